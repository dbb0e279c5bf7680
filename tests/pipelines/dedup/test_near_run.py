"""Whole runs with near-duplicates: many pages, in many splits, are versions of other pages.

Guarantee: Near-duplicates are those that plain Python finds by the same rules.
"""

import random
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.dedup.minhash import similarity
from pipelines.job.append import append
from pipelines.job.build import build
from shards.manifest import read_manifest
from shards.text_hash import fold_spaces
from tests.pipelines.dedup.pages import related_pages, torn_pages
from tests.pipelines.dedup.plain import sign
from tests.pipelines.runs import TEXT, small_lines, write_lines
from tests.pipelines.write.pipes import shipped

_PER_ITEM = (
    "exact.ROWS_PER_ITEM",
    "plan.BAND_ROWS_PER_ITEM",
    "plan.CANDIDATES_PER_ITEM",
    "plan.SLOTS_PER_ITEM",
    "plan.DROPS_PER_ITEM",
    "previous.CANDIDATES_AT_ONCE",
)
_AT_ONCE = (
    "exact.BLOCK_ROWS",
    "previous.BLOCK_ROWS",
    *(f"{name}.PAIRS_AT_ONCE" for name in ("near", "bands", "previous")),
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A way to build a dataset of pages."""

    days: int = 1
    """The number of appends, each of which has its own files."""
    files: int = 1
    threshold: float = 0.7
    rows: int = 0
    """The maximum number of rows per item; 0 for the default."""


CASES = (
    Case(),
    Case(files=5, rows=60),
    Case(threshold=0),
    Case(days=3),
    Case(days=3, rows=30),
    Case(days=4, rows=30, threshold=0),
)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_neither_splits_nor_items_affect_dedup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    """In every layout, dedup drops the pages that an all-pairs comparison in Python drops."""
    rng = random.Random(11)
    pages = [*related_pages(rng, 150), *torn_pages(rng, 30)]
    rng.shuffle(pages)
    if case.rows:
        for name, limit in {
            **dict.fromkeys(_PER_ITEM, case.rows),
            **dict.fromkeys(_AT_ONCE, 5),
        }.items():
            monkeypatch.setattr(f"pipelines.dedup.{name}", limit)
    splits = (10_000, 60_000, 1 << 20) if case.days == 1 else (25_000,)
    outputs = [tmp_path / str(size) for size in splits]
    choices = {"dedup": "minhash", "minhash_threshold": case.threshold}
    num, make = case.days * case.files, append if case.days > 1 else build
    for part in range(num):
        records = [{"content": page} for page in pages[part::num]]
        write_lines(tmp_path / "in" / f"part-{part:02}.jsonl", records)
        if (part + 1) % case.files == 0:
            for output, split_bytes in zip(outputs, splits, strict=True):
                more = {**choices, "split_bytes": split_bytes, "append": case.days > 1}
                make(TEXT, small_lines(output, tmp_path / "in", shards=4, **more))
    in_order = [page for part in range(num) for page in pages[part::num]]
    for output in outputs:
        rows = audit_rows(output)
        wanted = plain_reasons(in_order, [row[0] for row in rows], case)
        assert [row[1] for row in rows] == wanted
        assert min(map(wanted.count, (None, "duplicate", "near-duplicate"))) > 15
    made = [shipped(output) for output in outputs if case.days == 1]
    assert made[1:] == made[:-1]


def audit_rows(output: Path) -> list[tuple[tuple[int, int], str | None]]:
    """Return, in input order, each page's (generation, order), and the reason it was dropped."""
    found = []
    for generation in read_manifest(output).generations:
        for table in generation.audit:
            for row in pq.read_table(output / table.path).to_pylist():
                key = generation.number, row["order"]
                found.append(((row["path"], row["position"]), (key, row["reason"])))
    return [row for _, row in sorted(found)]


def plain_reasons(pages: list[str], orders: list[tuple[int, int]], case: Case) -> list[str | None]:
    """Return the reason to drop each page, found by comparing the page with all others."""
    texts = [fold_spaces(page) for page in pages]
    found = sign(texts)
    by_order = sorted(range(len(pages)), key=orders.__getitem__)
    firsts: dict[object, int] = {}
    near, copies = set(), set()
    for one in by_order:
        for band in enumerate(found.bands[one].tolist()):
            first = firsts.setdefault(band, one)
            alike = similarity(found.slots[[one]], found.slots[[first]])[0] >= case.threshold
            if first != one and (alike or not case.threshold):
                near.add(one)
        if firsts.setdefault(texts[one], one) != one:
            copies.add(one)
    return [
        "duplicate" if page in copies else "near-duplicate" if page in near else None
        for page in range(len(pages))
    ]
