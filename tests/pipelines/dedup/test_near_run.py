"""Whole runs with near-duplicates: pages of which many are versions of others, in many splits."""

import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.dedup.minhash import NUM_BANDS, sign, similarity
from pipelines.run.build import build
from shards import Dataset
from shards.text_hash import fold
from tests.pipelines.dedup.pages import related_pages, torn_pages
from tests.pipelines.runs import MODULE, small, write_wudao
from tests.pipelines.transforms.pipes import shipped

pytestmark = pytest.mark.slow


def audit_rows(output: Path) -> list[dict[str, Any]]:
    manifest = Dataset.open(output).manifest
    tables = [pq.read_table(output / t.path) for g in manifest.generations for t in g.audit]
    return [row for table in tables for row in table.to_pylist()]


@pytest.mark.parametrize("files", [1, 5])
def test_neither_splits_nor_files_decide_what_is_dropped(tmp_path: Path, files: int) -> None:
    """Plain Python that compares each page with all others says the same of every layout."""
    pages = [*related_pages(random.Random(11), 300), *torn_pages(random.Random(2), 60)]
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
