"""Tokenizers that are named badly, are missing, damaged, or of another kind than the spec says."""

import base64
import json
import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from tests.refusals.refusal import opened, refused
from tests.refusals.scenes import MODEL, Scene, holding, lines, together

RUN = "pipelines.wudao --output out --tokenizer"
HF = f"{RUN} hf:tokenizer.json"
SPM = f"{RUN} sentencepiece:a.model"
R50K = f"{RUN} tiktoken:r50k_base.tiktoken"
GPT2 = f"{RUN} tiktoken:merges.txt"
VOCAB = f"{RUN} hf:vocab.txt"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
HUGE = 1_500_000_000


@cache
def byte_level() -> str:
    """The JSON of a model of bytes with two merges and the tokens of an end and a beginning."""
    pieces = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: number for number, piece in enumerate([*pieces, "th", "the"])}
    library = tokenizers.Tokenizer(models.BPE(vocabulary, [("t", "h"), ("th", "e")]))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    library.add_special_tokens(["<|endoftext|>", "<|im_start|>"])
    return library.to_str()


def bert(words: list[str]) -> str:
    """The JSON of a model of whole words."""
    vocabulary = {word: number for number, word in enumerate(words)}
    library = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return library.to_str()


def changed(change: Callable[[dict[str, Any]], object]) -> Scene:
    """The scene of the model of bytes with a change in its JSON."""

    def fill(folder: Path) -> None:
        description = json.loads(byte_level())
        change(description)
        (folder / "tokenizer.json").write_text(json.dumps(description))

    return fill


def hf(content: str | bytes) -> Scene:
    return holding("tokenizer.json", content)


def ranks(numbers: Mapping[bytes, int]) -> Scene:
    rows = (base64.b64encode(piece) + b" %d\n" % number for piece, number in numbers.items())
    return holding("r50k_base.tiktoken", b"".join(rows))


BYTES = {bytes([number]): number for number in range(256)}


def gpt2(merges: str, vocabulary: str) -> Scene:
    return together(holding("merges.txt", merges), holding("vocab.json", vocabulary))


def bert_lines(text: str | bytes, config: str | None = None) -> Scene:
    more = [holding("tokenizer_config.json", config)] if config is not None else []
    return together(holding("vocab.txt", text), *more)


def folder_of_models(folder: Path) -> None:
    (folder / "models").mkdir()
    (folder / "models" / "glm.model").write_bytes(MODEL.read_bytes())


def as_pipe(path: str) -> Scene:
    return lambda folder: os.mkfifo(folder / path)


def as_link(path: str, target: str) -> Scene:
    return lambda folder: (folder / path).symlink_to(target)


def set_id(description: dict[str, Any]) -> None:
    description["added_tokens"][1]["id"] = HUGE


WORDS = "".join(f"{word}\n" for word in [*SPECIAL, "the", "dog", "##s"])

ROWS = (
    # Specs.
    refused(
        "tokenizer of an empty name",
        "pipelines.text --input in --tokenizer ''",
        "--tokenizer is missing: give sentencepiece:FILE.model, tiktoken:NAME or"
        " hf:tokenizer.json. To train one on this text: python -m pipelines.train_tokenizer"
        " --input in --vocab-size 50000 --output tokenizer.model",
        scene=lines,
    ),
    refused(
        "tokenizer without its kind",
        f"{RUN} gpt2",
        '--tokenizer "gpt2": write tiktoken:gpt2. No tokenizer yet? python -m'
        " pipelines.train_tokenizer --help shows how to train one.",
        scene=lines,
    ),
    refused(
        "tokenizer of the hub without its owner",
        f"{RUN} bert-base-chinese",
        '--tokenizer "bert-base-chinese": write hf:google-bert/bert-base-chinese.…',
        scene=lines,
    ),
    refused(
        "tokenizer of the hub without its owner, of its kind",
        f"{RUN} hf:bert-base-chinese",
        "hf:bert-base-chinese: there is no file bert-base-chinese. Did you mean"
        " hf:google-bert/bert-base-chinese?…",
        scene=lines,
    ),
    refused(
        "tokenizer of the hub without its kind",
        f"{RUN} Qwen/Qwen2.5-7B",
        '--tokenizer "Qwen/Qwen2.5-7B": write hf:Qwen/Qwen2.5-7B.…',
        scene=lines,
    ),
    refused(
        "tokenizer that looks like SentencePiece",
        f"{RUN} glm.model",
        '--tokenizer "glm.model": write sentencepiece:glm.model.…',
        scene=lines,
    ),
    refused(
        "tokenizer that looks like BERT",
        f"{RUN} bert/vocab.txt",
        '--tokenizer "bert/vocab.txt": write hf:bert/vocab.txt.…',
        scene=lines,
    ),
    refused(
        "tokenizer that looks like merges",
        f"{RUN} merges.txt",
        '--tokenizer "merges.txt": write tiktoken:merges.txt.…',
        scene=lines,
    ),
    refused(
        "tokenizer that looks like ranks",
        f"{RUN} x/gpt2.tiktoken",
        '--tokenizer "x/gpt2.tiktoken": write tiktoken:x/gpt2.tiktoken.…',
        scene=lines,
    ),
    refused(
        "tokenizer of an unknown kind",
        f"{RUN} spm:glm.model",
        '--tokenizer "spm:glm.model": write sentencepiece:PATH, tiktoken:NAME or tiktoken:PATH,'
        " hf:PATH or hf:OWNER/NAME.…",
        scene=lines,
    ),
    refused(
        "tokenizer of a mistyped kind",
        f"{RUN} sentencepeice:glm.model",
        '--tokenizer "sentencepeice:glm.model": write sentencepiece:glm.model.…',
        scene=lines,
    ),
    refused(
        "hf folder without a tokenizer",
        f"{RUN} hf:in",
        "hf:in: there is no file tokenizer.json or vocab.txt in the folder.…",
        scene=lines,
    ),
    refused(
        "sentencepiece folder with a model",
        f"{RUN} sentencepiece:models",
        "sentencepiece:models is a folder: name the tokenizer's file in it. Did you mean"
        " sentencepiece:models/glm.model?",
        scene=folder_of_models,
    ),
    opened(
        "tiktoken of an unknown encoding",
        f"{RUN} tiktoken:gpt5",
        "tiktoken:gpt5: there is no such file, and tiktoken knows no encoding of that name: did"
        " you mean gpt2? Give one of gpt2, r50k_base, p50k_base, p50k_edit, cl100k_base,"
        " o200k_base, o200k_harmony.",
        scene=lines,
    ),
    refused(
        "tokenizer that is a pipe",
        f"{RUN} hf:a.json",
        "hf:a.json: there is no file a.json.…",
        scene=as_pipe("a.json"),
    ),
    opened(
        "ranks that are a pipe",
        R50K,
        "tiktoken:r50k_base.tiktoken is a folder, a pipe or a device: expected a file called"
        " NAME.tiktoken, or GPT-2's merges.txt or vocab.bpe.",
        scene=as_pipe("r50k_base.tiktoken"),
    ),
    refused(
        "tokenizer of a name too long",
        f"{RUN} hf:{'x' * 300}.json",
        "hf:xxx…xxx.json: xxx…xxx.json cannot be read (File name too long).",
        scene=lines,
    ),
    # SentencePiece.
    opened(
        "model: a text",
        SPM,
        "a.model is no SentencePiece model (Error parsing message…)…",
        scene=holding("a.model", "not a model"),
    ),
    opened(
        "model: JSON by its name",
        f"{RUN} sentencepiece:x.json",
        "x.json is no SentencePiece model (Error parsing message…)… Did you mean hf:x.json?",
        scene=holding("x.json", "not a model"),
    ),
    # Hugging Face.
    opened(
        "json: a text",
        HF,
        "tokenizer.json: tokenizers cannot read it (expected ident at line 1 column 2)…",
        scene=hf("not a model"),
    ),
    opened(
        "json: with an empty vocabulary",
        HF,
        "tokenizer.json has no vocabulary: expected a trained tokenizer.json.",
        scene=changed(lambda description: description["model"].update(vocab={}, merges=[])),
    ),
    opened(
        "json: a model by its name",
        f"{RUN} hf:x.model",
        "x.model: tokenizers cannot read it (…): expected the file that tokenizer.save() and"
        " save_pretrained() write. Did you mean sentencepiece:x.model?",
        scene=holding("x.model", "no model of this kind"),
    ),
    opened(
        "json: no end of text",
        HF,
        "tokenizer.json has no token to end a document with: expected one of <|endoftext|>, </s>,"
        " <|end_of_text|>, <eos>, or all of [PAD], [SEP], [CLS], [MASK], [UNK].",
        scene=changed(lambda description: description.update(added_tokens=[])),
    ),
    opened(
        "json: an id above all holes",
        HF,
        "tokenizer.json: a piece has the id 1048836, with 260 pieces in all: ids count from 0, and"
        " at most 1048576 of them may be unused. The file is damaged: fetch or make it again.",
        scene=changed(lambda description: description["model"]["vocab"].update(a=1048836)),
    ),
    opened(
        "json: an id below 0",
        HF,
        "tokenizer.json: a piece has the id -1, with 260 pieces in all: ids count from 0, and at"
        " most 1048576 of them may be unused. The file is damaged: fetch or make it again.",
        scene=changed(lambda description: description["model"]["vocab"].update(a=-1)),
    ),
    opened(
        "json: two pieces of one id",
        HF,
        "tokenizer.json: 'x' and the special token '<|endoftext|>' have the same id, 258: the file"
        " is damaged, fetch or make it again.",
        scene=changed(lambda description: description["model"]["vocab"].update(x=258)),
    ),
    opened(
        "json: text spells a special token",
        HF,
        'hf:tokenizer.json turns the text "[PAD]" into the special token 0, so that a document'
        " could write control tokens: take it out of the model's ordinary vocabulary, or mark it"
        " as special.",
        scene=hf(bert([*SPECIAL, "the"])),
    ),
    # Vocabularies of BERT.
    opened(
        "vocab: two special tokens missing",
        VOCAB,
        "vocab.txt has no token to end a document with: expected one of <|endoftext|>, </s>,"
        " <|end_of_text|>, <eos>, or all of [PAD], [SEP], [CLS], [MASK], [UNK].",
        scene=bert_lines("[PAD]\n[CLS]\n[SEP]\na\n"),
    ),
    opened(
        "vocab: not UTF-8",
        VOCAB,
        "vocab.txt is no vocabulary of BERT (line 2 is not UTF-8): expected is a piece on each"
        " line. Fetch a copy that no program has changed.",
        scene=bert_lines(b"[PAD]\n\xb5\xc4\n"),
    ),
    opened(
        "vocab: config cut off",
        VOCAB,
        "tokenizer_config.json is beside the vocabulary and would say how it is used, but cannot"
        " be read (…): expected is the JSON that save_pretrained() writes. Mend it, or remove it.",
        scene=bert_lines(WORDS, "{"),
    ),
    opened(
        "vocab: config of another type",
        VOCAB,
        "tokenizer_config.json is beside the vocabulary and would say how it is used, but cannot"
        " be read (do_lower_case is 'no', not true or false)…",
        scene=bert_lines(WORDS, '{"do_lower_case": "no"}'),
    ),
    # tiktoken.
    opened(
        "ranks: of an unknown name",
        f"{RUN} tiktoken:mine.tiktoken",
        "mine.tiktoken: a file of ranks states neither its pattern nor its special tokens, so its"
        " name has to be one of gpt2.tiktoken, r50k_base.tiktoken, p50k_base.tiktoken,"
        " cl100k_base.tiktoken, o200k_base.tiktoken. Give any other model as hf:tokenizer.json.",
        scene=holding("mine.tiktoken", "YQ== 0\n"),
    ),
    opened(
        "ranks: of an unknown ending",
        f"{RUN} tiktoken:mine.bin",
        "tiktoken:mine.bin: expected a file called NAME.tiktoken, or GPT-2's merges.txt or"
        " vocab.bpe.",
        scene=holding("mine.bin", "YQ== 0\n"),
    ),
    opened(
        "ranks: a text",
        R50K,
        "r50k_base.tiktoken is no file of tiktoken ranks (…): each line should hold a piece in"
        " base64, a space and a number.",
        scene=holding("r50k_base.tiktoken", "not a model"),
    ),
    opened(
        "ranks: a byte missing",
        R50K,
        "r50k_base.tiktoken has pieces for 255 of 256 bytes, or one with the id of <|endoftext|>:"
        " it is damaged.",
        scene=ranks({x: n for x, n in BYTES.items() if n}),
    ),
    opened(
        "ranks: ids twice",
        R50K,
        "r50k_base.tiktoken has ids twice, or ids above 50256 or below 0: it is damaged.",
        scene=ranks({x: n // 2 for x, n in BYTES.items()}),
    ),
    opened(
        "ranks: the id of the end",
        R50K,
        "r50k_base.tiktoken has pieces for 256 of 256 bytes, or one with the id of <|endoftext|>:"
        " it is damaged.",
        scene=ranks({**BYTES, b"ab": 50256}),
    ),
    opened(
        "ranks: an id too large",
        R50K,
        "r50k_base.tiktoken has ids twice, or ids above 50256 or below 0: it is damaged.",
        scene=ranks({**BYTES, b"ab": 60000}),
    ),
    opened(
        "merges: without a vocabulary",
        GPT2,
        "merges.txt needs its vocabulary beside it: vocab.json is missing.",
        scene=holding("merges.txt", "t h\n"),
    ),
    opened(
        "merges: a vocabulary that is no JSON",
        GPT2,
        "merges.txt and vocab.json are not GPT-2's merges and vocabulary (…).",
        scene=gpt2("t h\n", "x"),
    ),
    opened(
        "merges: in another order",
        GPT2,
        "vocab.json does not number the merges of merges.txt in their order and then"
        " <|endoftext|>, as GPT-2 does: give this model as hf:tokenizer.json.",
        scene=gpt2("t h\n", '{"t": 0, "h": 1}'),
    ),
)
