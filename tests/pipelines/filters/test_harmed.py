"""Models and lists of others: whatever is in their files, a paragraph says so, or they work."""

import gzip
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine.trial import try_in_child
from pipelines.filters.blocklist import load_blocklist
from pipelines.filters.decontaminate import load_contamination
from pipelines.filters.langid import installed_model, load_identifier
from shards.errors import UserError
from tests.pipelines.mutations import harmed_bytes, harmed_json
from tests.pipelines.quality.models import LINES

FAILURE = re.compile("cannot be loaded|Traceback|(Type|Key|Index|Attribute|Recursion)Error|\n")
"""What is no sentence of ours: the library or our own code failed in a way of its own."""


QUESTION = "Which of the following words would a teacher of chemistry in Ohio never say aloud to us"
ITEMS = [
    {"text": QUESTION, "id": 5},
    {"question": QUESTION, "choices": ["yes", "no"], "answer": {"label": "A", "more": [QUESTION]}},
]
JSON_LINES = "\n".join(map(json.dumps, ITEMS)).encode()
BLOCKED = "# list\nexample.com\n*.xn--bcher-kva.ch\nbücher.example/shop # why\n10.0.0.1\n"


def trained(path: Path, *, quantize: bool) -> bytes:
    """The bytes of a small model of languages."""
    fasttext = pytest.importorskip("fasttext_new", reason="it trains")
    lines = path.with_suffix(".txt")
    lines.write_text("\n".join(LINES * 30) + "\n", encoding="utf-8")
    settings = {"dim": 6, "bucket": 300, "minn": 2, "maxn": 4, "thread": 1, "verbose": 0}
    library = fasttext.train_supervised(str(lines), loss="hs", **settings)
    if quantize:
        library.quantize(str(lines), qnorm=True, verbose=0)
    library.save_model(str(path))
    return path.read_bytes()


def table() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": [QUESTION] * 3, "id": [1, 2, 3]}), sink)
    return sink.getvalue().to_pybytes()


FILES: dict[str, Callable[[Path], bytes]] = {
    "plain.bin": partial(trained, quantize=False),
    "coded.bin": partial(trained, quantize=True),
    "installed.bin": lambda _: installed_model().read_bytes(),
    "items.jsonl": lambda _: JSON_LINES,
    "items.json": lambda _: json.dumps(ITEMS).encode(),
    "items.txt": lambda _: f"{QUESTION}\n{QUESTION} again\n".encode(),
    "items.jsonl.gz": lambda _: gzip.compress(JSON_LINES, mtime=0),
    "items.parquet": lambda _: table(),
    "domains": lambda _: BLOCKED.encode(),
}
"""The bytes of models of languages, of benchmarks and of a list of addresses."""


def use(path: Path) -> None:
    """Load a file and use it as a run does."""
    if path.suffix == ".bin":
        load_identifier(path).identify(["the cat", "猫 坐 在", "", "x" * 3000])
    elif path.stem.startswith("items"):
        load_contamination([str(path)]).hits([QUESTION, ""])
    else:
        urls = ["http://www.example.com/x", "", "//[::1]/", "http://%zz"]
        load_blocklist([str(path)]).blocked(urls)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "number"), [(1, 16), pytest.param(2, 100, marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("name", FILES)
def test_a_harmed_file_is_told_or_works(tmp_path: Path, name: str, seed: int, number: int) -> None:
    path = tmp_path / name
    content, told = FILES[name](path), {}
    for harm in (harmed_bytes, harmed_json) if name == "items.json" else (harmed_bytes,):
        for label, harmed in harm(content, seed=seed, number=number):
            path.write_bytes(harmed)
            told[label] = ""
            try:
                try_in_child(partial(use, path), "it")
            except UserError as error:
                told[label] = str(error)
    for label, message in told.items():
        assert not FAILURE.search(message), f"{label}: {message}"
        assert len(message) < 1000, label
    assert any(told.values()), "nothing was harmed"
