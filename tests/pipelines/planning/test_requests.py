from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipelines.corpus.options import Options
from pipelines.planning import requests as requests_module
from pipelines.planning.requests import count_requests, polling_requests
from pipelines.planning.sizes import (
    BAND_ROW_BYTES,
    SLOT_SIGNATURE_BYTES,
    Extent,
    run_extent,
    with_groups,
)
from pipelines.planning.storage import CountingStorage, Requests
from shards.tables import open_table
from tests.pipelines.made_segments import random_docs, write_segment
from tests.pipelines.planning.made_sources import made_source

NUM_BANDS = 14


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, pa.Table]:
    """Rows of a segment's tables."""
    stem = tmp_path_factory.mktemp("segment") / "s"
    write_segment(stem, random_docs(np.random.default_rng(0), 300))
    suffixes = ("documents", "holdout", "hashes", "audit", "examples")
    return {suffix: open_table(stem.with_suffix(f".{suffix}")) for suffix in suffixes}


def made_extent(
    tables: Mapping[str, pa.Table], splits: int = 100, *, option: Options | None = None, **of: Any
) -> Extent:
    source = made_source(splits, tables=tables, **{"tokens": 1e6 * splits, **of})
    return run_extent({"web": source}, option or Options(shards=128), token_bytes=2)


def total(extent: Extent) -> Requests:
    return sum(count_requests(extent, workers=2).values(), Requests())


def test_requests_are_counted_by_phase(tables: Mapping[str, pa.Table]) -> None:
    extent = made_extent(tables)
    phases = count_requests(extent, workers=2)
    assert list(phases) == ["map", "dedup", "merge", "the rest"]
    # documents, tokens, bins, holdout, hashes, audit, examples; note of the attempt, record
    assert phases["map"].put == 100 * (7 + 2)
    assert phases["map"].delete == 100, "notes of attempts"
    assert phases["merge"].get > 3 * extent.merge_slices
    assert not CountingStorage.objects


def test_requests_grow_in_proportion_to_the_corpus(tables: Mapping[str, pa.Table]) -> None:
    small, large = (
        total(made_extent(tables, splits, option=Options(shards=128, dedup="none")))
        for splits in (100, 1000)
    )
    assert large.all == pytest.approx(10 * small.all, rel=0.1)
    assert large.bytes == pytest.approx(10 * small.bytes, rel=0.1)


def test_a_single_range_fetches_whole_tables(tables: Mapping[str, pa.Table]) -> None:
    extent = made_extent(tables, 10)
    assert extent.text_ranges == 1
    dedup = count_requests(extent, workers=2)["dedup"]
    assert dedup.bytes == pytest.approx(extent.total("texts") * 29, rel=0.15)


def test_some_tasks_stand_for_all(
    tables: Mapping[str, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    extent = made_extent(tables, 10, option=Options(shards=32))
    some = total(extent)
    monkeypatch.setattr(requests_module, "MOST_TASKS", 32)
    every = total(extent)
    assert some.get == pytest.approx(every.get, rel=0.05)
    assert some.bytes == pytest.approx(every.bytes, rel=0.1)


def test_each_worker_asks_for_sizes_and_reads_the_plan(tables: Mapping[str, pa.Table]) -> None:
    extent = made_extent(tables)
    assert extent.text_ranges == 4
    one, four = (count_requests(extent, workers=workers) for workers in (1, 4))
    assert four["dedup"].get - one["dedup"].get == 3
    assert four["dedup"].head - one["dedup"].head == 3 + 3 * extent.segments
    assert four["merge"].head > one["merge"].head


def signed_extent(
    tables: Mapping[str, pa.Table], splits: int = 10, *, clusters: str = "local", **of: Any
) -> Extent:
    option = Options(shards=1, dedup="minhash", clusters=clusters)
    return made_extent(tables, splits, option=option, **{"signed": 10_000.0 * splits, **of})


def test_signatures_are_read_by_every_band(
    tables: Mapping[str, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    extent = signed_extent(tables)
    phases = count_requests(extent, workers=2)
    assert phases["map"].put == 10 * (7 + 2 + 2)
    without = replace(extent, band_ranges=0, slot_ranges=0)
    exact = count_requests(without, workers=2)["dedup"]
    reads = NUM_BANDS * extent.band_ranges * 10
    assert phases["dedup"].get - exact.get >= 2 * reads
    # drops, signatures; record
    assert phases["dedup"].put - exact.put == NUM_BANDS * extent.band_ranges * (2 + 1)
    whole = extent.total("signed") * NUM_BANDS * BAND_ROW_BYTES
    assert phases["dedup"].bytes - exact.bytes == pytest.approx(whole, rel=0.05)
    monkeypatch.setattr(requests_module, "MOST_SIGNED", 5000)
    thinned = count_requests(extent, workers=2)["dedup"]
    assert thinned.bytes == pytest.approx(phases["dedup"].bytes, rel=0.01)
    assert thinned.get == phases["dedup"].get


def test_tasks_of_slots_read_a_range_of_every_segment(
    tables: Mapping[str, pa.Table],
) -> None:
    extent = signed_extent(tables)
    assert extent.slot_ranges == 1
    slots = count_requests(extent, workers=2)["slots"]
    assert slots.put == 1 + 1  # table, record
    assert slots.get >= 10 * 2
    whole = extent.total("signed") * SLOT_SIGNATURE_BYTES
    assert slots.bytes == pytest.approx(whole, rel=0.05)
    many = count_requests(replace(extent, band_ranges=8, slot_ranges=16), workers=2)["slots"]
    assert many.put == 16 * 2
    assert many.get >= 16 * 10 * 2


def test_more_segments_are_read_by_tasks_of_slots(
    tables: Mapping[str, pa.Table],
) -> None:
    sizes = {"documents": 100.0, "tokens": 1e4}
    ten, twenty = (signed_extent(tables, splits, **sizes) for splits in (10, 20))
    few, many = (count_requests(extent, workers=1)["slots"] for extent in (ten, twenty))
    assert many.get - few.get == 10 * 2
    assert many.bytes == pytest.approx(2 * few.bytes, rel=0.05)


def test_components_leave_no_signatures_of_bands(tables: Mapping[str, pa.Table]) -> None:
    extent = signed_extent(tables, clusters="components")
    phases = count_requests(extent, workers=2)
    assert "slots" not in phases
    exact = count_requests(replace(extent, band_ranges=0), workers=2)["dedup"]
    assert phases["dedup"].put - exact.put == NUM_BANDS * extent.band_ranges * (2 + 1)


def test_a_source_without_documents_is_left_out(tables: Mapping[str, pa.Table]) -> None:
    full, empty = made_source(10, tables=tables), made_source(10)
    option = Options(shards=8)
    both = run_extent({"full": full, "empty": empty}, option, token_bytes=2)
    assert count_requests(both, workers=2)["map"].put >= 10 * 7
    neither = run_extent({"empty": empty}, option, token_bytes=2)
    assert list(count_requests(neither, workers=2)) == ["the rest"]


def test_groups_are_written_and_read(
    tables: Mapping[str, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.planning.sizes.MOST_SLICES", 1000)
    monkeypatch.setattr("pipelines.planning.sizes.ROWS_PER_GROUP", 100_000)
    sizes = {"records": 5000.0 * 100, "documents": 4800.0 * 100, "texts": 4800.0 * 100}
    extent = made_extent(tables, **sizes)
    phases = count_requests(extent, workers=2)
    groups = 5  # of 20 segments
    assert phases["group"].put == groups * (7 + 1)
    assert phases["group"].get > 100 * 7
    monkeypatch.undo()
    assert phases["merge"].get < count_requests(extent, workers=2)["merge"].get / 10


def test_ranges_are_written_and_read(
    tables: Mapping[str, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests_module, "MOST_ROWS", 20_000)
    monkeypatch.setattr("pipelines.planning.sizes.MOST_SLICES", 1000)
    monkeypatch.setattr("pipelines.planning.sizes.ROWS_PER_GROUP", 10_000)
    sizes = {"records": 500.0 * 400, "documents": 480.0 * 400, "texts": 480.0 * 400}
    extent = made_extent(tables, 400, **sizes)
    before = count_requests(extent, workers=2)
    assert "ranges" not in before
    monkeypatch.setattr("pipelines.merge.ranges.MOST_SHARD_SLICES", 1000)
    assert with_groups(extent).cuts == {"web": (8,)}
    phases = count_requests(extent, workers=2)
    assert phases["group"] == before["group"]
    written = 3 * 8  # 8 of the 20 groups at a time
    assert phases["ranges"].put == written * (5 + 1)
    assert phases["ranges"].get > 20 * 8 * 3
    assert phases["merge"].get < before["merge"].get / 4


def test_the_largest_sources_stand_for_the_rest(
    tables: Mapping[str, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {"records": 1e5, "documents": 1e5, "texts": 1e5, "tokens": 1e7}
    source = made_source(10, tables=tables, **sizes)
    option = Options(shards=2, dedup="none")
    extent = run_extent({"one": source, "two": source}, option, token_bytes=2)
    monkeypatch.setattr(requests_module, "with_groups", replace)
    every = count_requests(extent, workers=2)
    monkeypatch.setattr(requests_module, "MOST_ROWS", 1)
    largest = count_requests(extent, workers=2)
    assert largest["merge"].all == pytest.approx(every["merge"].all, rel=0.01)


def test_files_of_tokens_are_thinned_where_they_are_huge(
    tables: Mapping[str, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    extent = made_extent(tables, 4, option=Options(shards=4, dedup="none"), tokens=32e6)
    whole = count_requests(extent, workers=2)["merge"]
    monkeypatch.setattr(requests_module, "MOST_TOKEN_BYTES", 2 << 20)
    thin = count_requests(extent, workers=2)["merge"]
    assert thin.bytes == pytest.approx(whole.bytes, rel=0.2)
    assert thin.put == whole.put


def test_tokens_of_four_bytes_are_fetched_too(tables: Mapping[str, pa.Table]) -> None:
    extent = made_extent(tables, 4, option=Options(shards=4, dedup="none"))
    two, four = (
        count_requests(replace(extent, token_bytes=width), workers=2)["merge"] for width in (2, 4)
    )
    assert four.bytes - two.bytes == pytest.approx(2 * extent.total("tokens"), rel=0.2)


def test_lease_and_progress_ask_as_long_as_a_run_takes(tables: Mapping[str, pa.Table]) -> None:
    extent = made_extent(tables)
    hour = polling_requests(extent, seconds=3600)
    assert hour.put == 360
    assert hour.list >= 360
    assert polling_requests(extent, seconds=7200).all == pytest.approx(2 * hour.all)


def test_nothing_is_written_to_disk(
    tables: Mapping[str, pa.Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    count_requests(made_extent(tables, 2), workers=2)
    assert not list(tmp_path.iterdir())
