"""Whole runs with near-duplicates: pages of which many are versions of others, in many splits."""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from pipelines.corpus.recipe import SAMPLE
from pipelines.dedup.minhash import Signer
from pipelines.run.build import build
from shards import Dataset
from shards.text_hash import fold
from shards.verify import verify
from tests.nightly import a_few
from tests.pipelines.dedup.pages import related_pages
from tests.pipelines.runs import AT, content, small, write_wudao

pytestmark = pytest.mark.slow

MODULE = "pipelines.wudao"


@pytest.fixture(scope="module")
def pages() -> list[str]:
    return related_pages(random.Random(11), 300)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, pages: list[str]) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for part in range(3):
        records = [
            {"uniqueKey": f"{at}", "title": "", "content": page, "dataType": "手艺"}
            for at, page in enumerate(pages)
            if at % 3 == part
        ]
        write_wudao(folder / f"part-{part}.json", records)
    return folder


def options(output: Path, corpus: Path, **changes: Any) -> Any:
    return small(output, corpus, shards=4, validation=0.02, split_bytes=40_000, **changes)


def reasons(output: Path) -> dict[tuple[str, int], str | None]:
    manifest = Dataset.open(output).manifest
    tables = [pq.read_table(output / t.path) for g in manifest.generations for t in g.audit]
    rows = [row for table in tables for row in table.to_pylist()]
    assert len({(row["path"], row["position"]) for row in rows}) == len(rows)
    return {(row["path"], row["position"]): row["reason"] for row in rows}


CHANGES: dict[str, dict[str, Any]] = {
    "exact": {"dedup": "exact"},
    "near": {"dedup": "minhash"},
    "bands": {"dedup": "minhash", "minhash_threshold": 0.0},
    "components": {"dedup": "minhash", "minhash_threshold": 0.0, "clusters": "components"},
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Callable[[str], Path]:
    """The dataset of each of CHANGES, built when a test first asks for it."""
    folder = tmp_path_factory.mktemp("datasets")

    def built(name: str) -> Path:
        if not (folder / name).exists():
            build(MODULE, options(folder / name, corpus, **CHANGES[name]))
        return folder / name

    return built


@pytest.mark.parametrize("name", CHANGES)
def test_the_account_has_both_reasons(dataset: Callable[[str], Path], name: str) -> None:
    path = dataset(name)
    assert list(verify(Dataset.open(path))) == []
    account = Dataset.open(path).manifest.generations[0].accounting["wudao"]
    found = list(reasons(path).values())
    for reason in ("duplicate", "near-duplicate"):
        assert account["dropped"].get(reason, 0) == found.count(reason)
    assert account["dropped"]["duplicate"] > 20
    assert account["read"] == 300 == account["kept"] + sum(account["dropped"].values())
    assert ("near-duplicate" in account["dropped"]) == (name != "exact")


def test_near_duplicates_come_on_top_of_exact_ones(dataset: Callable[[str], Path]) -> None:
    found = {name: reasons(dataset(name)) for name in CHANGES}
    dropped = {name: {k for k, why in rows.items() if why} for name, rows in found.items()}
    for name in ("near", "bands", "components"):
        equal = {key for key, reason in found[name].items() if reason == "duplicate"}
        assert equal == dropped["exact"]
    assert dropped["exact"] < dropped["near"] < dropped["bands"]
    assert dropped["bands"] <= dropped["components"]
    assert len(dropped["near"]) > len(dropped["exact"]) + 50


def test_the_report_says_what_was_compared(dataset: Callable[[str], Path]) -> None:
    reports = {
        name: json.loads((dataset(name) / "report.json").read_text())["dedup"] for name in CHANGES
    }
    assert set(reports["exact"]) == {"exact"}
    assert reports["near"]["exact"] == reports["exact"]["exact"]
    near, bands = (reports[name]["near"] for name in ("near", "bands"))
    assert near["failed"] > 0 == bands["failed"]
    assert near["without_kept_mate"]["of"] > near["without_kept_mate"]["documents"]
    assert sum(reports["components"]["near"]["components"].values()) > 20


@pytest.mark.parametrize("name", ["bands", "components"])
def test_no_two_that_are_kept_share_a_band(
    dataset: Callable[[str], Path], pages: list[str], name: str
) -> None:
    signatures = Signer().signatures([fold(page) for page in pages])
    kept = [
        int(key)
        for split in ("train", "validation")
        for shard in Dataset.open(dataset(name)).documents(split=split).shards()
        for key in shard.documents["id"].to_pylist()
    ]
    assert len(kept) > 50
    for band in signatures.bands[kept].T:
        assert len(np.unique(band)) == len(kept)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", ["near", "components"])
def test_worker_processes_make_the_same_bytes(
    dataset: Callable[[str], Path], corpus: Path, tmp_path: Path, name: str, workers: int
) -> None:
    done = run(corpus, tmp_path / "out", name, "--workers", str(workers))
    assert done.returncode == 0, done.stderr
    assert content(tmp_path / "out") == content(dataset(name))


def run(
    corpus: Path, output: Path, name: str, *flags: str, script: tuple[object, ...] = ()
) -> subprocess.CompletedProcess[str]:
    words = [*(script or ("-m",)), MODULE, "--input", corpus, "--output", output]
    words += ["--tokenizer", f"sentencepiece:{SAMPLE / 'sample.model'}", "--languages", "all"]
    words += ["--language-threshold", "0", "--validation", "0.02", "--shards", "4"]
    words += ["--split-bytes", "40000", "--dedup", "minhash", *flags]
    if name == "components":
        words += ["--minhash-threshold", "0", "--clusters", "components"]
    command = [sys.executable, *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, start_new_session=True
    )


@pytest.mark.parametrize(
    "moment",
    a_few(
        [
            ("near", r"\.work/map/.*\.bands$", 3),
            ("near", r"\.work/map/.*\.links$", 2),
            ("near", r"\.work/dedup/.*\.edges$", 4),
            ("near", r"\.work/dedup/.*\.json$", 9),
            ("near", r"\.work/drops/.*\.drops$", 1),
            ("near", r"signatures/band-07-00000.arrow", 1),
            ("near", r"signatures/slots-00000.arrow", 1),
            ("near", r"\.work/mates/.*\.json$", 1),
            ("components", r"\.work/components/.*\.edges$", 2),
            ("components", r"\.work/components/.*\.drops$", 1),
        ],
        of_each=3,
    ),
    ids=lambda moment: f"{moment[0]}-{moment[1]}",
)
def test_killed_anywhere_the_same_command_makes_the_same_bytes(
    dataset: Callable[[str], Path], corpus: Path, tmp_path: Path, moment: tuple[str, str, int]
) -> None:
    name, pattern, nth = moment
    output = tmp_path / "out"
    assert run(corpus, output, name, script=(AT, pattern, nth, "kill -9 0")).returncode == -9
    assert not (output / "manifest.json").exists()
    again = run(corpus, output, name)
    assert again.returncode == 0, again.stderr
    assert "tasks were finished before" in again.stderr
    assert content(output) == content(dataset(name))
