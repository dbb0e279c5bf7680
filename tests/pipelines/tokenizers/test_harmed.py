"""Tokenizers of others: whatever is in their files, a paragraph says so, or they work."""

import base64
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipelines.engine.trial import try_in_child
from pipelines.tokenizers.agreement import CHECK_TEXTS
from pipelines.tokenizers.tokenizer import load_tokenizer
from shards.errors import UserError
from tests.pipelines.mutations import harmed_bytes, harmed_json, harmed_messages
from tests.pipelines.tokenizers.trained import KINDS, field, train

Harmed = Iterator[tuple[str, bytes]]

OWN_FAILURE = re.compile(r"(Type|Key|Value|Index|Attribute|Recursion|Unicode\w+|Assertion)Error")
"""What our own code would raise if it believed a file; a library may say so, in its words."""


def check_use(spec: str) -> str:
    """Load and use a tokenizer as the commands do, and return what the user is told; "" if used."""

    def use() -> None:
        tokenizer = load_tokenizer(spec)
        tokens, _, failures = tokenizer.encode_batch(CHECK_TEXTS)
        assert not len(tokens) or int(tokens.max()) < tokenizer.pieces
        assert failures == []
        assert tokenizer.vocabulary().num_rows == tokenizer.vocabulary_size

    try:
        try_in_child(use, spec)
    except UserError as error:
        return str(error)
    return ""


def check_all(harmed: Harmed, spec: Callable[[str, bytes], str]) -> None:
    told = {name: check_use(spec(name, content)) for name, content in harmed}
    for name, message in told.items():
        assert len(message) < 1500, name
        assert "\n" not in message, name
        assert not OWN_FAILURE.search(message), f"{name}: {message}"
        assert "does not survive" not in message, f"{name}: {message}"
    assert any(told.values()), "nothing was harmed"


def written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


SEEDS = [pytest.param(1, 16), pytest.param(2, 96, marks=pytest.mark.nightly)]


@pytest.mark.parametrize(("seed", "number"), SEEDS)
@pytest.mark.parametrize("kind", ["identity", "nmt_nfkc", "line breaks"])
def test_sentencepiece(tmp_path: Path, kind: str, seed: int, number: int) -> None:
    content = train(**KINDS[kind])

    def spec(name: str, harmed: bytes) -> str:
        return f"sentencepiece:{written(tmp_path / f'{name}.model', harmed)}"

    check_all(harmed_bytes(content, seed=seed, number=number), spec)
    check_all(harmed_messages(content, seed=seed, number=number // 2), spec)


@pytest.mark.parametrize(("seed", "number"), SEEDS)
@pytest.mark.parametrize("kind", ["hf_path", "bert_path"])
def test_tokenizer_json(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, seed: int, number: int
) -> None:
    content = request.getfixturevalue(kind).read_bytes()

    def spec(name: str, harmed: bytes) -> str:
        return f"hf:{written(tmp_path / f'{name}.json', harmed)}"

    check_all(harmed_bytes(content, seed=seed, number=number // 3), spec)
    check_all(harmed_json(content, seed=seed, number=number), spec)


@pytest.mark.parametrize(("seed", "number"), SEEDS)
def test_tiktoken_ranks(
    gpt2_ranks: dict[bytes, int], tmp_path: Path, seed: int, number: int
) -> None:
    content = b"".join(
        base64.b64encode(piece) + b" %d\n" % rank for piece, rank in gpt2_ranks.items()
    )
    check_all(
        harmed_bytes(content, seed=seed, number=number),
        lambda name, harmed: f"tiktoken:{written(tmp_path / name / 'gpt2.tiktoken', harmed)}",
    )


@pytest.mark.parametrize(("seed", "number"), SEEDS)
def test_merges(gpt2_path: Path, tmp_path: Path, seed: int, number: int) -> None:
    merges = gpt2_path.read_bytes()
    vocabulary = gpt2_path.with_name("tiny-vocab.json").read_bytes()

    def with_merges(name: str, harmed: bytes) -> str:
        written(tmp_path / name / "vocab.json", vocabulary)
        return f"tiktoken:{written(tmp_path / name / 'merges.txt', harmed)}"

    def with_vocabulary(name: str, harmed: bytes) -> str:
        written(tmp_path / name / "vocab.json", harmed)
        return f"tiktoken:{written(tmp_path / name / 'merges.txt', merges)}"

    check_all(harmed_bytes(merges, seed=seed, number=number // 2), with_merges)
    check_all(harmed_bytes(vocabulary, seed=seed, number=number // 2), with_vocabulary)
    check_all(harmed_json(vocabulary, seed=seed, number=number // 2), with_vocabulary)


def test_byte_piece_that_is_none(tmp_path: Path) -> None:
    content = train() + field(1, field(1, b"<0xZZ>") + field(3, 6))
    path = written(tmp_path / "a.model", content)
    assert "is no SentencePiece model" in check_use(f"sentencepiece:{path}")
