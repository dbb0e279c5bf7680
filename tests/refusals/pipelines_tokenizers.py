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

from tests.refusals.refusal import Said, opened, refused, with_scene
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

RANKS = {
    "ranks that are a pipe": (
        as_pipe("r50k_base.tiktoken"),
        "tiktoken:r50k_base.tiktoken is a folder, a pipe or a device: expected a file called"
        " NAME.tiktoken, or GPT-2's merges.txt or vocab.bpe.",
    ),
    "ranks: a text": (
        holding("r50k_base.tiktoken", "not a model"),
        "r50k_base.tiktoken is no file of tiktoken ranks (…): each line should hold a piece in"
        " base64, a space and a number.",
    ),
    "ranks: a byte missing": (
        ranks({x: n for x, n in BYTES.items() if n}),
        "r50k_base.tiktoken has pieces for 255 of 256 bytes, or one with the id of <|endoftext|>:"
        " it is damaged.",
    ),
    "ranks: ids twice": (
        ranks({x: n // 2 for x, n in BYTES.items()}),
        "r50k_base.tiktoken has ids twice, or ids above 50256 or below 0: it is damaged.",
    ),
    "ranks: the id of the end": (
        ranks({**BYTES, b"ab": 50256}),
        "r50k_base.tiktoken has pieces for 256 of 256 bytes, or one with the id of <|endoftext|>:"
        " it is damaged.",
    ),
    "ranks: an id too large": (
        ranks({**BYTES, b"ab": 60000}),
        "r50k_base.tiktoken has ids twice, or ids above 50256 or below 0: it is damaged.",
    ),
}

HUGGING_FACE = {
    "json: a text": (
        hf("not a model"),
        "tokenizer.json: tokenizers cannot read it (expected ident at line 1 column 2)…",
    ),
    "json: with an empty vocabulary": (
        changed(lambda description: description["model"].update(vocab={}, merges=[])),
        "tokenizer.json has no vocabulary: expected a trained tokenizer.json.",
    ),
    "json: no end of text": (
        changed(lambda description: description.update(added_tokens=[])),
        "tokenizer.json has no token to end a document with: expected one of <|endoftext|>, </s>,"
        " <|end_of_text|>, <eos>, or all of [PAD], [SEP], [CLS], [MASK], [UNK].",
    ),
    "json: an id above all holes": (
        changed(lambda description: description["model"]["vocab"].update(a=1048836)),
        "tokenizer.json: a piece has the id 1048836, with 260 pieces in all: ids count from 0, and"
        " at most 1048576 of them may be unused. The file is damaged: fetch or make it again.",
    ),
    "json: an id below 0": (
        changed(lambda description: description["model"]["vocab"].update(a=-1)),
        "tokenizer.json: a piece has the id -1, with 260 pieces in all: ids count from 0, and at"
        " most 1048576 of them may be unused. The file is damaged: fetch or make it again.",
    ),
    "json: two pieces of one id": (
        changed(lambda description: description["model"]["vocab"].update(x=258)),
        "tokenizer.json: 'x' and the special token '<|endoftext|>' have the same id, 258: the file"
        " is damaged, fetch or make it again.",
    ),
    "json: text spells a special token": (
        hf(bert([*SPECIAL, "the"])),
        'hf:tokenizer.json turns the text "[PAD]" into the special token 0, so that a document'
        " could write control tokens: take it out of the model's ordinary vocabulary, or mark it"
        " as special.",
    ),
}

VOCABULARIES = {
    "vocab: two special tokens missing": (
        bert_lines("[PAD]\n[CLS]\n[SEP]\na\n"),
        "vocab.txt has no token to end a document with: expected one of <|endoftext|>, </s>,"
        " <|end_of_text|>, <eos>, or all of [PAD], [SEP], [CLS], [MASK], [UNK].",
    ),
    "vocab: not UTF-8": (
        bert_lines(b"[PAD]\n\xb5\xc4\n"),
        "vocab.txt is no vocabulary of BERT (line 2 is not UTF-8): expected is a piece on each"
        " line. Fetch a copy that no program has changed.",
    ),
    "vocab: config cut off": (
        bert_lines(WORDS, "{"),
        "tokenizer_config.json is beside the vocabulary and would say how it is used, but cannot"
        " be read (…): expected is the JSON that save_pretrained() writes. Mend it, or remove it.",
    ),
    "vocab: config of another type": (
        bert_lines(WORDS, '{"do_lower_case": "no"}'),
        "tokenizer_config.json is beside the vocabulary and would say how it is used, but cannot"
        " be read (do_lower_case is 'no', not true or false)…",
    ),
}

COMMANDS: Mapping[str, Said] = {
    "pipelines.text --input in --tokenizer ''": (
        "--tokenizer is missing: give sentencepiece:FILE.model, tiktoken:NAME or"
        " hf:tokenizer.json. To train one on this text: python -m pipelines.train_tokenizer"
        " --input in --vocab-size 50000 --output tokenizer.model"
    ),
    f"{RUN} gpt2": (
        '--tokenizer "gpt2": write tiktoken:gpt2. No tokenizer yet? python -m'
        " pipelines.train_tokenizer --help shows how to train one."
    ),
    f"{RUN} bert-base-chinese": (
        '--tokenizer "bert-base-chinese": write hf:google-bert/bert-base-chinese.…'
    ),
    f"{RUN} hf:bert-base-chinese": (
        "hf:bert-base-chinese: there is no file bert-base-chinese. Did you mean"
        " hf:google-bert/bert-base-chinese?…"
    ),
    f"{RUN} Qwen/Qwen2.5-7B": '--tokenizer "Qwen/Qwen2.5-7B": write hf:Qwen/Qwen2.5-7B.…',
    f"{RUN} glm.model": '--tokenizer "glm.model": write sentencepiece:glm.model.…',
    f"{RUN} bert/vocab.txt": '--tokenizer "bert/vocab.txt": write hf:bert/vocab.txt.…',
    f"{RUN} merges.txt": '--tokenizer "merges.txt": write tiktoken:merges.txt.…',
    f"{RUN} x/gpt2.tiktoken": '--tokenizer "x/gpt2.tiktoken": write tiktoken:x/gpt2.tiktoken.…',
    f"{RUN} spm:glm.model": (
        '--tokenizer "spm:glm.model": write sentencepiece:PATH, tiktoken:NAME or tiktoken:PATH,'
        " hf:PATH or hf:OWNER/NAME.…"
    ),
    f"{RUN} sentencepeice:glm.model": (
        '--tokenizer "sentencepeice:glm.model": write sentencepiece:glm.model.…'
    ),
    f"{RUN} hf:in": "hf:in: there is no file tokenizer.json or vocab.txt in the folder.…",
    f"{RUN} sentencepiece:models": (
        "sentencepiece:models is a folder: name the tokenizer's file in it. Did you mean"
        " sentencepiece:models/glm.model?",
        folder_of_models,
    ),
    f"{RUN} hf:a.json": (
        "hf:a.json: there is no file a.json.…",
        as_pipe("a.json"),
    ),
    f"{RUN} hf:{'x' * 300}.json": (
        "hf:xxx…xxx.json: xxx…xxx.json cannot be read (File name too long)."
    ),
}

ROWS = (
    *(
        refused(command.replace(str(MODEL), "MODEL"), command, says, scene=scene)
        for command, (says, scene) in (
            (command, with_scene(said, lines)) for command, said in COMMANDS.items()
        )
    ),
    *(opened(name, R50K, says, scene=scene) for name, (scene, says) in RANKS.items()),
    *(opened(name, HF, says, scene=scene) for name, (scene, says) in HUGGING_FACE.items()),
    *(opened(name, VOCAB, says, scene=scene) for name, (scene, says) in VOCABULARIES.items()),
    opened(
        "tiktoken of an unknown encoding",
        f"{RUN} tiktoken:gpt5",
        "tiktoken:gpt5: there is no such file, and tiktoken knows no encoding of that name: did"
        " you mean gpt2? Give one of gpt2, r50k_base, p50k_base, p50k_edit, cl100k_base,"
        " o200k_base, o200k_harmony.",
        scene=lines,
    ),
    opened(
        "model: a text",
        SPM,
        "a.model is no SentencePiece model (Error parsing message…): give the .model file that"
        " spm_train or python -m pipelines.train_tokenizer wrote.",
        scene=holding("a.model", "not a model"),
    ),
    opened(
        "model: JSON by its name",
        f"{RUN} sentencepiece:x.json",
        "x.json is no SentencePiece model (Error parsing message…)… Did you mean hf:x.json?",
        scene=holding("x.json", "not a model"),
    ),
    opened(
        "json: a model by its name",
        f"{RUN} hf:x.model",
        "x.model: tokenizers cannot read it (…): expected the file that tokenizer.save() and"
        " save_pretrained() write. Did you mean sentencepiece:x.model?",
        scene=holding("x.model", "no model of this kind"),
    ),
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
