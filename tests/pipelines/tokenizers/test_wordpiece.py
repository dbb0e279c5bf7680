import json
from pathlib import Path

import numpy as np
import pytest
from tokenizers import BertWordPieceTokenizer
from transformers import BertTokenizerFast

from pipelines.tokenizers.agreement import CHECK_TEXTS
from pipelines.tokenizers.command_tokens import wordpiece_commands
from pipelines.tokenizers.tokenizer import Tokenizer, load_tokenizer
from pipelines.tokenizers.wordpiece import wordpiece_json
from shards.errors import UserError
from tests.pipelines.tokenizers.texts import SENTENCES, ids, shared

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [
    *SPECIAL,
    *[
        "的",
        "一",
        "是",
        "人",
        "工",
        "智",
        "能",
        "我",
        "，",
        "a",
        "b",
        "##b",
        ".",
        "e",
        "cafe",
        "café",
        "the",
        "dog",
        "##s",
    ],
]
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


def assert_as_transformers(tokenizer: Tokenizer, path: Path, **settings: object) -> None:
    """Check ids against transformers' own tokenizer; text without the names of special tokens."""
    words = {word: i for i, word in enumerate(path.read_text("utf-8").split("\n")[:-1])}
    theirs = BertTokenizerFast(vocab=words, **settings)
    tokens, lengths, failures = tokenizer.encode_batch(TEXTS)
    assert not failures
    parts = np.split(tokens, np.cumsum(lengths)[:-1])
    for text, part in zip(TEXTS, parts, strict=True):
        assert part.tolist() == theirs(text, add_special_tokens=False)["input_ids"], text
    assert tokens.max() > 100


@pytest.mark.parametrize("cased", [False, True])
def test_the_vocabulary_of_bert_base_uncased(cased: bool, tmp_path: Path) -> None:
    words = shared("tokenizers/bert-base-uncased-vocab.txt").read_text("utf-8").split("\n")[:-1]
    config = {"do_lower_case": False} if cased else None
    path = write(tmp_path, words, config)
    tokenizer = load(path)
    assert (tokenizer.pieces, tokenizer.vocabulary_size) == (30522, 30592)
    own = {"pad": 0, "unk": 100, "cls": 101, "sep": 102, "mask": 103}
    assert tokenizer.special == dict(wordpiece_commands(30522, own=own).ids)
    assert not {101, 102, 103} & set(ids(tokenizer, "[CLS] a [MASK] b [SEP]"))
    assert_as_transformers(tokenizer, path, do_lower_case=not cased)


def test_the_library_describes_it_likewise(tmp_path: Path) -> None:
    path = write(tmp_path, WORDS)
    ours = json.loads(wordpiece_json(path.read_bytes(), path=path))
    library = BertWordPieceTokenizer(str(path), lowercase=True)
    theirs = json.loads(library.to_str())
    assert {**theirs, "post_processor": None} == ours


def test_the_same_ids_as_by_tokenizer_json(tmp_path: Path) -> None:
    by_lines = load(write(tmp_path / "lines", WORDS))
    (tmp_path / "json").mkdir()
    library = BertWordPieceTokenizer(str(tmp_path / "lines/vocab.txt"), lowercase=True)
    library.save(str(tmp_path / "json/tokenizer.json"))
    by_json = load(tmp_path / "json")
    assert by_json.special == by_lines.special
    assert by_json.pieces == by_lines.pieces
    for text in TEXTS:
        assert ids(by_json, text) == ids(by_lines, text)


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


def test_chinese_in_one_word_if_the_config_says_so(tmp_path: Path) -> None:
    apart = load(write(tmp_path / "apart", WORDS))
    together = load(write(tmp_path / "together", WORDS, {"tokenize_chinese_chars": False}))
    assert len(ids(apart, "的我")) == 2
    assert ids(together, "的我") == [WORDS.index("[UNK]")]


def test_lines_end_with_line_feeds_alone(tmp_path: Path) -> None:
    tokenizer = load(write(tmp_path, [*WORDS, "\u2028", "##\u2028", "last"]))
    assert ids(tokenizer, "last") == [len(WORDS) + 2], "bert-base-chinese has such pieces"


def test_any_name_that_ends_in_txt_and_windows_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "chinese-pieces.txt"
    path.write_bytes("\r\n".join(WORDS).encode())
    assert load(path).pieces == len(WORDS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[PAD]\n[CLS]\n[SEP]\na\n", r"no token to end a document .*or all of \[PAD\]"),
        (b"#version: 0.2\nt h\n", r"vocab\.txt has no token to end a document with"),
        (b"[PAD]\n\xb5\xc4\n", r"line 2 is not UTF-8"),
        (b"", r"no token to end a document with"),
    ],
)
def test_what_is_no_vocabulary(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        load(path)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "is not a mapping"),
        ('{"do_lower_case": "no"}', "do_lower_case is 'no', not true or false"),
    ],
)
def test_a_config_that_cannot_be_read(config: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, WORDS)
    (tmp_path / "tokenizer_config.json").write_text(config)
    with pytest.raises(UserError, match=rf"tokenizer_config\.json is beside .*{message}"):
        load(path)


def test_empty_lines_and_pieces_twice_take_a_number_as_by_transformers(tmp_path: Path) -> None:
    tokenizer = load(write(tmp_path, [*WORDS[:-1], "", "dog", WORDS[-1]]))
    assert ids(tokenizer, "the dogs") == [WORDS.index("the"), len(WORDS), len(WORDS) + 1]


def test_folders(tmp_path: Path) -> None:
    path = write(tmp_path / "model", WORDS)
    assert load(path.parent).fingerprint == load(path).fingerprint
    with pytest.raises(UserError, match=r"no file tokenizer\.json or vocab\.txt in the folder"):
        load(tmp_path)


def test_a_name_without_its_kind() -> None:
    with pytest.raises(UserError, match=r"write hf:bert/vocab\.txt\."):
        load_tokenizer("bert/vocab.txt")
    with pytest.raises(UserError, match=r"write tiktoken:merges\.txt\."):
        load_tokenizer("merges.txt")
