"""Tokenizers that are misspelt, missing, damaged, or of a different kind than the flag says."""

import base64
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from tests.refusals.refusal import at_start, refused
from tests.refusals.setups import MODEL, Setup, all_of, lines, with_file

RUN = "pipelines.wudao --output out --tokenizer"
HF = f"{RUN} hf:tokenizer.json"
R50K = f"{RUN} tiktoken:r50k_base.tiktoken"
VOCAB = f"{RUN} hf:vocab.txt"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@cache
def byte_level() -> str:
    """Return the JSON of a byte-level model that has two merges and two special tokens."""
    pieces = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: number for number, piece in enumerate([*pieces, "th", "the"])}
    library = tokenizers.Tokenizer(models.BPE(vocabulary, [("t", "h"), ("th", "e")]))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    library.add_special_tokens(["<|endoftext|>", "<|im_start|>"])
    return library.to_str()


def bert(words: list[str]) -> str:
    """Return the JSON of a model whose pieces are whole words."""
    vocabulary = {word: number for number, word in enumerate(words)}
    library = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return library.to_str()


def changed(change: Callable[[dict[str, Any]], object]) -> Setup:
    """Return the setup that writes the byte-level model after changing the JSON."""

    def fill(folder: Path) -> None:
        description = json.loads(byte_level())
        change(description)
        (folder / "tokenizer.json").write_text(json.dumps(description))

    return fill


def numbered(**ids: int) -> Setup:
    """Return the setup that writes the byte-level model with new ids for some pieces."""
    return changed(lambda description: description["model"]["vocab"].update(ids))


def hf(content: str | bytes) -> Setup:
    return with_file("tokenizer.json", content)


def ranks(numbers: Mapping[bytes, int]) -> Setup:
    rows = (base64.b64encode(piece) + b" %d\n" % number for piece, number in numbers.items())
    return with_file("r50k_base.tiktoken", b"".join(rows))


BYTES = {bytes([number]): number for number in range(256)}


def gpt2(merges: str, vocabulary: str) -> Setup:
    return all_of(with_file("merges.txt", merges), with_file("vocab.json", vocabulary))


def bert_lines(text: str | bytes, config: str | None = None) -> Setup:
    more = [with_file("tokenizer_config.json", config)] if config is not None else []
    return all_of(with_file("vocab.txt", text), *more)


def folder_of_models(folder: Path) -> None:
    (folder / "models").mkdir()
    (folder / "models" / "glm.model").write_bytes(MODEL.read_bytes())


def as_pipe(path: str) -> Setup:
    return lambda folder: os.mkfifo(folder / path)


WORDS = "".join(f"{word}\n" for word in [*SPECIAL, "the", "dog", "##s"])

RANKS = {
    "ranks that are a pipe": as_pipe("r50k_base.tiktoken"),
    "ranks: a text": with_file("r50k_base.tiktoken", "not a model"),
    "ranks: a byte missing": ranks({x: n for x, n in BYTES.items() if n}),
    "ranks: ids twice": ranks({x: n // 2 for x, n in BYTES.items()}),
    "ranks: the id of the end": ranks({**BYTES, b"ab": 50256}),
    "ranks: an id too large": ranks({**BYTES, b"ab": 60000}),
}

HUGGING_FACE = {
    "json: a text": hf("not a model"),
    "json: with an empty vocabulary": changed(
        lambda description: description["model"].update(vocab={}, merges=[])
    ),
    "json: no end of text": changed(lambda description: description.update(added_tokens=[])),
    "json: an id above all holes": numbered(a=1048836),
    "json: an id below 0": numbered(a=-1),
    "json: two pieces of one id": numbered(x=258),
    "json: text spells a special token": hf(bert([*SPECIAL, "the"])),
}

ENDS = {
    "end: none of the tokens": ("hf:tokenizer.json --eos '<|im_stat|>'", hf(byte_level())),
    "end: a piece of texts": ("hf:tokenizer.json --eos the", hf(byte_level())),
    "end: a piece of a model": (
        "sentencepiece:a.model --eos a",
        with_file("a.model", MODEL.read_bytes()),
    ),
    "end: of an encoding": ("tiktoken:r50k_base.tiktoken --eos '</s>'", ranks(BYTES)),
    "end: config cut off": (
        "hf:tokenizer.json",
        all_of(
            changed(lambda description: description.update(added_tokens=[])),
            with_file("tokenizer_config.json", "{"),
        ),
    ),
    "end: config of another type": (
        "hf:tokenizer.json",
        all_of(
            changed(lambda description: description.update(added_tokens=[])),
            with_file("tokenizer_config.json", '{"eos_token": {"text": "the"}}'),
        ),
    ),
}
"""The values of --tokenizer and --eos, and the setup, by row name."""

VOCABULARIES = {
    "vocab: two special tokens missing": bert_lines("[PAD]\n[CLS]\n[SEP]\na\n"),
    "vocab: not UTF-8": bert_lines(b"[PAD]\n\xb5\xc4\n"),
    "vocab: config cut off": bert_lines(WORDS, "{"),
    "vocab: config of another type": bert_lines(WORDS, '{"do_lower_case": "no"}'),
}

COMMANDS = (
    "pipelines.text --input in --tokenizer ''",
    f"{RUN} gpt2",
    f"{RUN} bert-base-chinese",
    f"{RUN} hf:bert-base-chinese",
    f"{RUN} Qwen/Qwen2.5-7B",
    f"{RUN} glm.model",
    f"{RUN} bert/vocab.txt",
    f"{RUN} merges.txt",
    f"{RUN} x/gpt2.tiktoken",
    f"{RUN} spm:glm.model",
    f"{RUN} sentencepeice:glm.model",
    f"{RUN} hf:in",
    f"{RUN} hf:{'x' * 300}.json",
)
ELSEWHERE = {
    f"{RUN} sentencepiece:models": folder_of_models,
    f"{RUN} hf:a.json": as_pipe("a.json"),
}

OF_ANY_KIND = {
    "tiktoken of an unknown encoding": ("tiktoken:gpt5", lines),
    "model: a text": ("sentencepiece:a.model", with_file("a.model", "not a model")),
    "model: JSON by its name": ("sentencepiece:x.json", with_file("x.json", "not a model")),
    "json: a model by its name": ("hf:x.model", with_file("x.model", "no model of this kind")),
    "ranks: of an unknown name": ("tiktoken:mine.tiktoken", with_file("mine.tiktoken", "YQ== 0\n")),
    "ranks: of an unknown ending": ("tiktoken:mine.bin", with_file("mine.bin", "YQ== 0\n")),
    "merges: without a vocabulary": ("tiktoken:merges.txt", with_file("merges.txt", "t h\n")),
    "merges: a vocabulary that is no JSON": ("tiktoken:merges.txt", gpt2("t h\n", "x")),
    "merges: in another order": ("tiktoken:merges.txt", gpt2("t h\n", '{"t": 0, "h": 1}')),
}
"""The value of --tokenizer, and the setup, by row name."""

_WARNED = {
    **dict.fromkeys(
        (
            "ranks: a byte missing",
            "ranks: ids twice",
            "ranks: the id of the end",
            "ranks: an id too large",
        ),
        "is it complete",
    ),
    "json: two pieces of one id": "is not used",
}
"""The output before the message, by row name, for the rows that have one."""

ROWS = (
    *(
        refused(command.replace(str(MODEL), "MODEL"), command, setup=setup)
        for command, setup in {**dict.fromkeys(COMMANDS, lines), **ELSEWHERE}.items()
    ),
    *(
        replace(at_start(name, R50K, setup=setup), output_before=_WARNED.get(name, ""))
        for name, setup in RANKS.items()
    ),
    *(
        replace(at_start(name, HF, setup=setup), output_before=_WARNED.get(name, ""))
        for name, setup in HUGGING_FACE.items()
    ),
    *(at_start(name, VOCAB, setup=setup) for name, setup in VOCABULARIES.items()),
    *(
        at_start(name, f"{RUN} {spec}", setup=setup)
        for name, (spec, setup) in {**OF_ANY_KIND, **ENDS}.items()
    ),
    at_start(
        "tiktoken that cannot be fetched",
        f"{RUN} tiktoken:gpt2",
        env={
            "https_proxy": "http://127.0.0.1:1",
            "HTTPS_PROXY": "http://127.0.0.1:1",
            "TIKTOKEN_CACHE_DIR": "",
        },
    ),
)
