"""Models and lists of others: whatever is in their files, a paragraph says so, or they work."""

import gzip
import json
import re
from collections.abc import Callable, Iterator
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

SEEDS = [pytest.param(1, 20), pytest.param(2, 120, marks=pytest.mark.nightly)]
FAILURE = re.compile("cannot be loaded|Traceback|(Type|Key|Index|Attribute|Recursion)Error|\n")
"""What is no sentence of ours: the library or our own code failed in a way of its own."""


def told(load: Callable[[], object]) -> str:
    try:
        try_in_child(load, "it")
    except UserError as error:
        return str(error)
    return ""


def check_all(harmed: Iterator[tuple[str, bytes]], path: Path, load: Callable[[], object]) -> None:
    messages = {}
    for name, content in harmed:
        path.write_bytes(content)
        messages[name] = told(load)
    for name, message in messages.items():
        assert not FAILURE.search(message), f"{name}: {message}"
        assert len(message) < 1000, name
    assert any(messages.values()), "nothing was harmed"


def train(path: Path, *, loss: str, **settings: int) -> Path:
    fasttext = pytest.importorskip("fasttext_new", reason="it trains")
    lines = path.with_suffix(".txt")
    lines.write_text("\n".join(LINES * 30) + "\n", encoding="utf-8")
    settings = {"dim": 6, "bucket": 300, "minn": 2, "maxn": 4, **settings}
    quantize = settings.pop("quantize", 0)
    library = fasttext.train_supervised(str(lines), loss=loss, thread=1, verbose=0, **settings)
    if quantize:
        library.quantize(str(lines), qnorm=True, qout=quantize > 1, verbose=0)
    library.save_model(str(path))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "number"), SEEDS)
@pytest.mark.parametrize("kind", ["plain", "coded", "installed"])
def test_language_models(tmp_path: Path, kind: str, seed: int, number: int) -> None:
    if kind == "installed":
        content = installed_model().read_bytes()
        number //= 3
    else:
        model = tmp_path / "trained.bin"
        content = train(model, loss="hs", quantize=int(kind == "coded")).read_bytes()
    path = tmp_path / "model.bin"

    def use() -> None:
        load_identifier(path).identify(["the cat", "猫 坐 在", "", "x" * 3000])

    check_all(harmed_bytes(content, seed=seed, number=number), path, use)


QUESTION = "Which of the following words would a teacher of chemistry in Ohio never say aloud to us"
BENCHMARK = [
    {"text": QUESTION, "id": 5},
    {"question": QUESTION, "choices": ["yes", "no"], "answer": {"label": "A", "more": [QUESTION]}},
]


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "number"), SEEDS)
@pytest.mark.parametrize(
    "name", ["items.jsonl", "items.json", "items.txt", "items.jsonl.gz", "items.parquet"]
)
def test_benchmarks(tmp_path: Path, name: str, seed: int, number: int) -> None:
    path = tmp_path / name
    lines = "\n".join(map(json.dumps, BENCHMARK)).encode()
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": [QUESTION] * 3, "id": [1, 2, 3]}), sink)
    content = {
        "items.jsonl": lines,
        "items.jsonl.gz": gzip.compress(lines, mtime=0),
        "items.json": json.dumps(BENCHMARK).encode(),
        "items.txt": f"{QUESTION}\n{QUESTION} again\n".encode(),
        "items.parquet": sink.getvalue().to_pybytes(),
    }[name]

    def use() -> None:
        load_contamination([str(path)]).hits([QUESTION, ""])

    check_all(harmed_bytes(content, seed=seed, number=number // 2), path, use)
    if name == "items.json":
        check_all(harmed_json(content, seed=seed, number=number // 2), path, use)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "number"), SEEDS)
def test_blocklists(tmp_path: Path, seed: int, number: int) -> None:
    path = tmp_path / "domains.txt"
    content = (
        "# list\nexample.com\n*.xn--bcher-kva.ch\nbücher.example/shop # why\n10.0.0.1\n".encode()
    )

    def use() -> None:
        load_blocklist([str(path)]).blocked(
            ["http://www.example.com/x", "", "//[::1]/", "http://%zz"]
        )

    check_all(harmed_bytes(content, seed=seed, number=number), path, use)
