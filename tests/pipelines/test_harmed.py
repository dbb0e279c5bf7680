"""Damaged files from users either work, or an error of one paragraph names the problem."""

import gzip
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.steps.blocklist import load_blocklist
from pipelines.steps.decontaminate import load_contamination
from pipelines.steps.langid import installed_model, load_identifier
from pipelines.tokenizers.agreement import CHECK_TEXTS
from pipelines.tokenizers.tokenizer import load_tokenizer
from tests.golden.corpus_scripts import byte_level, pieces_of_words
from tests.pipelines.mutations import harmed_bytes, harmed_json, harmed_models
from tests.pipelines.quality.models import write_classifier
from tests.pipelines.tokenizers.trained import KINDS, train
from tests.pipelines.trial import error_in_child

OWN_ERROR = r"Traceback|(Type|Key|Index|Attribute|Recursion)Error|\n"
QUESTION = "Which of the following words would a teacher of chemistry in Ohio never say aloud to us"
ITEMS = [
    {"text": QUESTION, "id": 5},
    {"question": QUESTION, "choices": ["yes", "no"], "answer": {"label": "A", "more": [QUESTION]}},
]
JSON_LINES = "\n".join(map(json.dumps, ITEMS)).encode()
BLOCKED = "# list\nexample.com\n*.xn--bcher-kva.ch\nbücher.example/shop # why\n10.0.0.1\n"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of file, and how to load and use it as a run does."""

    use: Callable[[Path], None]
    never: str
    """A pattern of messages that are not ours, which show that a library or our code failed
    unexpectedly."""


def use_tokenizer(scheme: str, path: Path) -> None:
    tokenizer = load_tokenizer(f"{scheme}:{path}")
    tokens, _, failures = tokenizer.encode_batch(CHECK_TEXTS)
    assert not len(tokens) or int(tokens.max()) < tokenizer.pieces
    assert failures == []
    assert tokenizer.vocabulary().num_rows == tokenizer.vocabulary_size


def use_filter(path: Path) -> None:
    if path.suffix == ".bin":
        load_identifier(path).identify(["the cat", "猫 坐 在", "", "x" * 3000])
    elif path.stem.startswith("items"):
        load_contamination([str(path)]).hits([QUESTION, ""])
    else:
        urls = ["http://www.example.com/x", "", "//[::1]/", "http://%zz"]
        load_blocklist([str(path)]).blocked(urls)


FILTER = Kind(use=use_filter, never=f"cannot be loaded|{OWN_ERROR}")
OF_TOKENIZERS = rf"(Value|Unicode\w+|Assertion)Error|exit code|{OWN_ERROR}"
PIECES, RANKS, HF = (
    Kind(use=partial(use_tokenizer, scheme), never=OF_TOKENIZERS)
    for scheme in ("sentencepiece", "tiktoken", "hf")
)


def table(path: Path) -> None:
    pq.write_table(pa.table({"text": [QUESTION] * 3, "id": [1, 2, 3]}), path)


def of(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def beside(write: Callable[[Path], object]) -> Callable[[Path], object]:
    """Return a function that writes files into the folder that contains a path."""
    return lambda path: write(path.parent)


HARMED: Mapping[str, tuple[Kind, Callable[[Path], object]]] = {
    "plain.bin": (FILTER, write_classifier),
    "coded.bin": (FILTER, partial(write_classifier, quantize={"qnorm": True})),
    "installed.bin": (FILTER, of(installed_model().read_bytes())),
    "items.jsonl": (FILTER, of(JSON_LINES)),
    "items.json": (FILTER, of(json.dumps(ITEMS).encode())),
    "items.txt": (FILTER, of(f"{QUESTION}\n{QUESTION} again\n".encode())),
    "items.jsonl.gz": (FILTER, of(gzip.compress(JSON_LINES, mtime=0))),
    "items.parquet": (FILTER, table),
    "domains": (FILTER, of(BLOCKED.encode())),
    **{
        f"{name}.model": (PIECES, lambda path: path.write_bytes(train(**KINDS[path.stem])))
        for name in ("identity", "nmt_nfkc", "line breaks")
    },
    "level.json": (HF, beside(byte_level)),
    "vocab.txt": (HF, beside(pieces_of_words)),
    "r50k_base.tiktoken": (RANKS, beside(byte_level)),
    "merges.txt": (RANKS, beside(byte_level)),
    "vocab.json": (RANKS, beside(byte_level)),
}
"""By the name of the file to damage: the kind of file, and the function that writes it."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "number"), [(1, 16), pytest.param(2, 100, marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("name", HARMED)
def test_a_harmed_file_fails_clearly_or_works(
    tmp_path: Path, name: str, seed: int, number: int
) -> None:
    kind, write = HARMED[name]
    path = tmp_path / name
    write(path)
    content, messages = path.read_bytes(), {}
    ways = {".json": (harmed_bytes, harmed_json), ".model": (harmed_bytes, harmed_models)}
    given = path.with_name("merges.txt") if name == "vocab.json" else path
    for harm in ways.get(path.suffix, (harmed_bytes,)):
        for label, harmed in harm(content, seed=seed, number=number):
            path.write_bytes(harmed)
            messages[label] = error_in_child(partial(kind.use, given))
    for label, message in messages.items():
        assert not re.search(kind.never, message), f"{label}: {message}"
        assert len(message) < 1500, label
    assert any(messages.values()), "nothing was harmed"
