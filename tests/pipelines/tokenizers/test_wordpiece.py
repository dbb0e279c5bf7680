import json
from pathlib import Path

import pytest
from transformers import BertTokenizerFast

from pipelines.tokenizers.agreement import CHECK_TEXTS
from pipelines.tokenizers.command_tokens import wordpiece_commands
from pipelines.tokenizers.tokenizer import Tokenizer, load_tokenizer
from tests.pipelines.tokenizers.texts import SENTENCES, ids, shared

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [
    *SPECIAL, *"的一是人工智能我，ab", "##b", ".", "e", "cafe", "café", "the", "dog", "##s",
]  # fmt: skip
TEXTS = [
    *(text for text in CHECK_TEXTS if not any(name in text for name in SPECIAL)),
    *(text for text in SENTENCES if "[MASK]" not in text),
    "The dogs, 人工智能的我！ Café CAFÉ cafe\u0301\x00a\u3000b",
]


def write(
    folder: Path, words: list[str], config: object = None, *, name: str = "vocab.txt"
) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("".join(f"{word}\n" for word in words), "utf-8")
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return path


def load(path: Path) -> Tokenizer:
    return load_tokenizer(f"hf:{path}")


@pytest.mark.parametrize("cased", [False, True])
def test_the_vocabulary_of_bert_base_uncased(cased: bool, tmp_path: Path) -> None:
    words = shared("tokenizers/bert-base-uncased-vocab.txt").read_text("utf-8").split("\n")[:-1]
    config = {"do_lower_case": False} if cased else None
    path = write(tmp_path, words, config)
    tokenizer = load(path)
    assert (tokenizer.pieces, tokenizer.vocabulary_size) == (30522, 30592)
    own = {"pad": 0, "unk": 100, "cls": 101, "sep": 102, "mask": 103}
    assert tokenizer.special == dict(wordpiece_commands(30522, own=own, end_of_text=None).ids)
    assert not {101, 102, 103} & set(ids(tokenizer, "[CLS] a [MASK] b [SEP]"))
    theirs = BertTokenizerFast(
        vocab={word: i for i, word in enumerate(words)}, do_lower_case=not cased
    )
    for text in TEXTS:
        assert ids(tokenizer, text) == theirs(text, add_special_tokens=False)["input_ids"], text


@pytest.mark.parametrize(
    ("more", "config", "expected"),
    [
        ([], None, "uncased"),
        (["The"], None, "cased"),
        (["<S>", "[unused1]", "ℝ"], None, "uncased"),
        (["I", *(str(number) for number in range(100))], None, "uncased"),
        (["The"], {"do_lower_case": True}, "uncased"),
        ([], {"do_lower_case": False}, "cased"),
        ([], {"model_max_length": 512}, "uncased"),
        ([], {"strip_accents": False}, "accents"),
    ],
)
def test_case_and_accents(more: list[str], config: object, expected: str, tmp_path: Path) -> None:
    tokenizer = load(write(tmp_path, [*WORDS, *more], config))
    number = {word: i for i, word in enumerate(WORDS)}
    read = {"cased": "[UNK]", "uncased": "cafe", "accents": "café"}[expected]
    assert ids(tokenizer, "CAFÉ") == [number[read]]


def test_empty_lines_and_pieces_twice_take_a_number_as_by_transformers(tmp_path: Path) -> None:
    tokenizer = load(write(tmp_path, [*WORDS[:-1], "", "dog", WORDS[-1]]))
    assert ids(tokenizer, "the dogs") == [WORDS.index("the"), len(WORDS), len(WORDS) + 1]
