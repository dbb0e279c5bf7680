"""Whole runs with near-duplicates: pages of which many are versions of others, in many splits."""

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.corpus.recipe import SAMPLE
from pipelines.dedup.minhash import NUM_BANDS, sign, similarity
from pipelines.run.build import build
from shards import Dataset
from shards.text_hash import fold
from tests.nightly import a_few
from tests.pipelines.dedup.pages import related_pages, torn_pages
from tests.pipelines.runs import AT, content, small, write_wudao
from tests.pipelines.transforms.pipes import shipped

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


def audit_rows(output: Path) -> list[dict[str, Any]]:
    manifest = Dataset.open(output).manifest
    tables = [pq.read_table(output / t.path) for g in manifest.generations for t in g.audit]
    return [row for table in tables for row in table.to_pylist()]


CHANGES: dict[str, dict[str, Any]] = {
    "near": {"dedup": "minhash"},
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


@pytest.mark.parametrize("files", [1, 5])
def test_neither_splits_nor_files_decide_what_is_dropped(
    tmp_path: Path, pages: list[str], files: int
) -> None:
    """Plain Python that compares each page with all others says the same of every layout."""
    pages = [*pages, *torn_pages(random.Random(2), 60)]
    size = -(-len(pages) // files)
    for part in range(files):
        records = [{"uniqueKey": "", "title": "", "content": page} for page in pages]
        write_wudao(tmp_path / "in" / f"part-{part}.json", records[part * size : (part + 1) * size])
    found = []
    for split_bytes in (10_000, 60_000, 1 << 20):
        output = tmp_path / str(split_bytes)
        choices = {"dedup": "minhash", "split_bytes": split_bytes, "shards": 4}
        build(MODULE, small(output, tmp_path / "in", **choices))
        rows = sorted(audit_rows(output), key=lambda row: (row["path"], row["position"]))
        found.append([row["reason"] for row in rows])
        assert found[-1] == plain_reasons(pages, [row["order"] for row in rows])
    assert found[0] == found[1] == found[2]
    assert min(found[0].count(reason) for reason in (None, "duplicate", "near-duplicate")) > 30
    made = [shipped(tmp_path / str(size)) for size in (10_000, 60_000, 1 << 20)]
    assert made[0] == made[1] == made[2]


def plain_reasons(pages: list[str], orders: list[int]) -> list[str | None]:
    """Why each page is dropped, if it is: the rules, with each page compared with all others."""
    texts = [fold(page) for page in pages]
    found = sign(texts)
    by_order = sorted(range(len(pages)), key=orders.__getitem__)

    def reason(one: int) -> str | None:
        if any(texts[at] == texts[one] and orders[at] < orders[one] for at in by_order):
            return "duplicate"
        for band in range(NUM_BANDS):
            hashes = found.bands[:, band]
            smallest = next(at for at in by_order if hashes[at] == hashes[one])
            pair = found.slots[[one]], found.slots[[smallest]]
            if smallest != one and similarity(*pair)[0] >= 0.7:
                return "near-duplicate"
        return None

    return [reason(one) for one in range(len(pages))]


@pytest.mark.parametrize(("name", "workers"), [("near", 1), ("components", 2)])
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
            ("near", r"\.work/map/.*\.slots$", 2),
            ("components", r"\.work/dedup/.*\.edges$", 4),
            ("near", r"\.work/dedup/.*\.json$", 9),
            ("near", r"\.work/drops/.*\.drops$", 1),
            ("near", r"signatures/band-07-00000.arrow", 1),
            ("near", r"signatures/slots-00000.arrow", 1),
            ("components", r"\.work/components/.*\.json$", 1),
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
