"""Tokenizers of others: whatever is in their files, a paragraph says so, or they work."""

import base64
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipelines.engine.trial import try_in_child
from pipelines.tokenizers.agreement import CHECK_TEXTS
from pipelines.tokenizers.tokenizer import load_tokenizer
from shards.errors import UserError
from tests.pipelines.mutations import harmed_bytes, harmed_json, harmed_messages
from tests.pipelines.tokenizers.trained import KINDS, train

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


def written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def ranks_of(ranks: Mapping[bytes, int]) -> bytes:
    rows = (base64.b64encode(piece) + b" %d\n" % rank for piece, rank in ranks.items())
    return b"".join(rows)


HARMED = {
    "identity": ("sentencepiece", "a.model", (harmed_bytes, harmed_messages)),
    "nmt_nfkc": ("sentencepiece", "a.model", (harmed_bytes, harmed_messages)),
    "line breaks": ("sentencepiece", "a.model", (harmed_bytes, harmed_messages)),
    "hf_path": ("hf", "tokenizer.json", (harmed_bytes, harmed_json)),
    "bert_path": ("hf", "tokenizer.json", (harmed_bytes, harmed_json)),
    "gpt2_ranks": ("tiktoken", "gpt2.tiktoken", (harmed_bytes,)),
    "merges": ("tiktoken", "merges.txt", (harmed_bytes,)),
    "vocabulary": ("tiktoken", "vocab.json", (harmed_bytes, harmed_json)),
}
"""Of each tokenizer its kind, the file that is harmed, and how."""


@pytest.fixture
def whole(kind: str, request: pytest.FixtureRequest) -> dict[str, bytes]:
    """The files of a tokenizer; the path to the first one is given."""
    if kind in KINDS:
        return {"a.model": train(**KINDS[kind])}
    if kind == "gpt2_ranks":
        return {"gpt2.tiktoken": ranks_of(request.getfixturevalue(kind))}
    if kind in ("merges", "vocabulary"):
        merges: Path = request.getfixturevalue("gpt2_path")
        vocabulary = merges.with_name("tiny-vocab.json")
        return {"merges.txt": merges.read_bytes(), "vocab.json": vocabulary.read_bytes()}
    return {"tokenizer.json": request.getfixturevalue(kind).read_bytes()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "number"), [(1, 16), pytest.param(2, 96, marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("kind", HARMED)
def test_a_harmed_file_is_told_or_works(
    kind: str, whole: Mapping[str, bytes], seed: int, number: int, tmp_path: Path
) -> None:
    scheme, name, ways = HARMED[kind]
    told = {}
    for harm in ways:
        for label, content in harm(whole[name], seed=seed, number=number):
            for file, each in {**whole, name: content}.items():
                written(tmp_path / label / file, each)
            told[label] = check_use(f"{scheme}:{tmp_path / label / next(iter(whole))}")
    for label, message in told.items():
        assert len(message) < 1500, label
        assert "\n" not in message, label
        assert not OWN_FAILURE.search(message), f"{label}: {message}"
        assert "does not survive" not in message, f"{label}: {message}"
    assert any(told.values()), "nothing was harmed"
