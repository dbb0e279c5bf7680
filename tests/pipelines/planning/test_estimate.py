import gzip
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.corpus.options import Options
from pipelines.corpus.recipe import load_recipe
from pipelines.inputs.split import Split
from pipelines.merge.group import MOST_SLICES
from pipelines.planning import sample
from pipelines.planning.estimate import beam_bytes, estimate, phase_seconds, worker_bytes
from pipelines.planning.requests import Blocks, Requests, requests, uploaded
from pipelines.planning.run import planned
from pipelines.planning.sizes import (
    SourceSize,
    extent,
    grouped,
    num_segments,
    num_shards,
    share_held,
)
from pipelines.planning.table import clock, lines, size
from pipelines.run import command
from pipelines.run.build import build
from pipelines.run.command import completed
from pipelines.segments.range import Range
from pipelines.segments.tables import open_between, open_rows, write_table
from pipelines.wudao import RECIPE
from shards.manifest import TRAIN, VALIDATION, sum_shards
from shards.storage.files import files
from shards.storage.remote import RemotePath
from tests.pipelines.runs import page

ROW_BYTES = {"documents": 40.0, "audit": 28.0, "holdout": 20.0, "hashes": 29.0}
SPLIT = Split(
    source="web",
    path="/data/web/a.json",
    relative="a.json",
    file_bytes=1,
    start=0,
    end=1,
    mtime_ns=1,
)


def source(splits: int = 100, **changes: Any) -> SourceSize:
    """A source of full segments, one a split."""
    plain = SourceSize(
        files=splits,
        stored_bytes=splits * (128 << 20),
        splits=splits,
        segments=splits,
        records=50_000.0 * splits,
        documents=48_000.0 * splits,
        tokens=30e6 * splits,
        rejects=0.0,
        texts=48_000.0 * splits,
        signed=0.0,
        links=0.0,
        map_seconds=20.0 * splits,
        audit_bytes=2e6 * splits,
        kept_bytes=0.0,
        example_bytes=0.0,
        row_bytes=ROW_BYTES,
    )
    return replace(plain, **changes)


@pytest.mark.parametrize(
    ("records", "tokens", "segments"),
    [(0, 0, 1), (131_072, 100, 1), (131_073, 100, 2), (1000, 33_554_433, 2), (1e6, 1e6, 8)],
)
def test_a_split_is_left_as_so_many_segments(records: float, tokens: float, segments: int) -> None:
    assert num_segments(records, tokens) == segments


@pytest.mark.parametrize(
    ("tokens", "given", "shards"),
    [(0, 0, 1), (100e6, 0, 1), (101e6, 0, 2), (199e6, 0, 4), (300e9, 0, 4096), (5, 7, 7)],
)
def test_a_source_gets_so_many_shards(tokens: float, given: int, shards: int) -> None:
    options = Options(shards=given)
    assert num_shards(source(tokens=tokens), options) == shards


def test_validation_is_a_share_of_bounded_size() -> None:
    assert share_held(source(documents=1e6), Options()) == 0.001
    assert share_held(source(documents=3200), Options()) == 0.01
    assert share_held(source(documents=10), Options()) == 0.05
    assert share_held(source(), Options(validation=0)) == 0


def test_what_grows_with_the_corpus_grows_evenly() -> None:
    plain = Options(shards=128, dedup="none")
    small, large = (extent({"web": source(splits)}, plain, token_bytes=2) for splits in (100, 1000))
    for name in ("segment_bytes", "shard_bytes", "other_bytes", "merge_slices"):
        assert getattr(large, name) == pytest.approx(10 * getattr(small, name)), name
    assert worker_bytes(large, remote=False)["map"] == worker_bytes(small, remote=False)["map"]
    asked = [
        sum(requests(each, workers=2, seconds=0).values(), Requests()) for each in (small, large)
    ]
    assert asked[1].all == pytest.approx(10 * asked[0].all, rel=0.1)


def test_more_workers_take_less_time_and_no_other_disk() -> None:
    made = extent({"web": source()}, Options(), token_bytes=2)
    one, four = (phase_seconds(made, workers=workers) for workers in (1, 4))
    assert one["map"] == pytest.approx(4 * four["map"])
    assert phase_seconds(made, workers=1000)["map"] >= 20
    assert all(one[phase] >= four[phase] for phase in one)


def test_bytes_through_beam_are_those_of_the_records_of_tasks() -> None:
    made = extent({"web": source()}, Options(dedup="none"), token_bytes=2)
    doubled = extent({"web": source(200)}, Options(dedup="none", shards=64), token_bytes=2)
    assert 100 * 100 < beam_bytes(made, SPLIT) < 100 * 1000
    assert beam_bytes(doubled, SPLIT) > 1.5 * beam_bytes(made, SPLIT)


def test_very_many_slices_are_read_from_groups() -> None:
    few = extent({"web": source()}, Options(), token_bytes=2)
    assert grouped(few) is few
    many = extent({"web": source(100_000)}, Options(), token_bytes=2)
    assert many.slices > MOST_SLICES
    groups = grouped(many)
    assert groups.segments == 100_000 // 80
    assert groups.segment_bytes == pytest.approx(many.segment_bytes, rel=0.01)
    found = estimate(many, workers=64, split=SPLIT, model_bytes=0, remote=True)
    assert found.seconds["group"] > 0
    assert found.requests["group"].put > groups.segments
    assert any("groups" in line for line in lines(found, Options(), shares={"web": 0.1}))


@dataclass
class Fetched:
    """The requests for parts of files, and their bytes."""

    number: int = 0
    bytes: int = 0


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> Fetched:
    """What was asked for so far."""
    found, whole = Fetched(), RemotePath.read_ranges

    def read_ranges(self: RemotePath, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        found.number += len(ranges)
        found.bytes += sum(stop - start for start, stop in ranges)
        return whole(self, ranges)

    monkeypatch.setattr(RemotePath, "read_ranges", read_ranges)
    return found


def table_of_blocks(rows: int, *, names: bool) -> tuple[RemotePath, Blocks]:
    """A table sorted by hashes, and what is known of it before it is there."""
    values = np.random.default_rng(rows).integers(0, 2**64, rows, np.uint64, endpoint=False)
    columns: dict[str, Any] = {"order": np.sort(values), "length": np.zeros(rows)}
    columns |= {f"score {at}": np.zeros(rows) for at in range(3)}
    if names:
        columns["path"] = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), ["a" * 50])
    path = RemotePath(f"memory://blocks/{rows}-{names}")
    write_table(path, pa.table(columns))
    return path, Blocks(rows=rows, row_bytes=44.0 if names else 40.0, names=names)


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("ranges", [1, 8, 64, 512])
@pytest.mark.parametrize("rows", [1000, 31_000, 200_000])
def test_ranges_of_a_table_are_fetched_as_foretold(
    fetched: Fetched, rows: int, ranges: int, names: bool
) -> None:
    path, blocks = table_of_blocks(rows, names=names)
    chosen = range(0, ranges, max(1, ranges // 61))
    for at in chosen:
        within = Range.of(at, ranges)
        open_between(path, "order", low=within.low, high=within.high)
    foretold = blocks.between(ranges) * len(chosen)
    assert fetched.number == pytest.approx(foretold.get, rel=0.1)
    assert fetched.bytes == pytest.approx(foretold.bytes, rel=0.15)


@pytest.mark.parametrize("part", [0.001, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("rows", [1000, 31_000, 200_000])
def test_parts_of_a_table_are_fetched_as_foretold(fetched: Fetched, rows: int, part: float) -> None:
    path, blocks = table_of_blocks(rows, names=False)
    size = round(rows * part)
    starts = range(0, rows - size + 1, max(1, (rows - size) // 40))
    for start in starts:
        open_rows(path, slice(start, start + size))
    foretold = blocks.known(part) * len(starts)
    assert fetched.number == pytest.approx(foretold.get, rel=0.1)
    assert fetched.bytes == pytest.approx(foretold.bytes, rel=0.15)


@pytest.mark.parametrize("part", [0.001, 0.05, 0.5])
@pytest.mark.parametrize("rows", [1000, 31_000, 200_000])
def test_the_first_rows_of_a_table_are_fetched_as_foretold(
    fetched: Fetched, rows: int, part: float
) -> None:
    path, blocks = table_of_blocks(rows, names=False)
    open_between(path, "order", low=0, high=round(2**64 * part))
    foretold = blocks.below(part)
    assert fetched.number == round(foretold.get)
    assert fetched.bytes == pytest.approx(foretold.bytes, rel=0.35)


def test_a_large_file_goes_up_in_parts() -> None:
    assert uploaded(100 << 20).put == 1
    assert uploaded(200 << 20).put == 6


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "5 s"), (600, "10 min"), (86_400, "24.0 h"), (864_000, "10.0 days")]
)
def test_times_are_told(seconds: float, text: str) -> None:
    assert clock(seconds) == text


@pytest.mark.parametrize(("count", "text"), [(5, "5 B"), (2.5e9, "2.5 GB"), (4e15, "4,000 TB")])
def test_sizes_are_told(count: float, text: str) -> None:
    assert size(count) == text


def texts(count: int) -> Iterator[bytes]:
    return (orjson.dumps({"text": f"{page(at)['content']} {at}"}) + b"\n" for at in range(count))


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "parquet"])
def test_a_part_of_a_file_tells_its_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(sample, "PIECE_BYTES", 1 << 20)
    rows = 30_000
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        values = [orjson.loads(line)["text"] for line in texts(rows)]
        pq.write_table(pa.table({"text": values}), path, row_group_size=2000)
    else:
        with gzip.open(path, "wb", 1) if kind.endswith("gz") else path.open("wb") as file:
            file.writelines(texts(rows))
    recipe = load_recipe("pipelines.text")
    options = replace(
        recipe.options(input=(str(path),), tokenizer=RECIPE.sample_tokenizer),
        output=tmp_path / "out",
        split_bytes=4 << 20,
        language_threshold=0,
    )
    found, sampled = planned("pipelines.text", options, seconds=1)
    assert sampled["text"].share < 0.9, "a part was looked at"
    assert found.extent.total("records") == pytest.approx(rows, rel=0.1)
    assert not (tmp_path / "out").exists()


def test_the_sample_corpus_comes_out_as_it_was_foretold(tmp_path: Path) -> None:
    options = replace(completed(RECIPE.options(), RECIPE), output=tmp_path / "out")
    found, _ = planned("pipelines.wudao", replace(options, keep_segments=True))
    made = build("pipelines.wudao", replace(options, keep_segments=True))
    sums = [sum_shards(made.shards(split=split)) for split in (TRAIN, VALIDATION)]
    counts = found.extent
    assert counts.total("documents") == pytest.approx(
        sum(each.documents for each in sums), rel=0.25
    )
    assert counts.total("tokens") == pytest.approx(sum(each.tokens for each in sums), rel=0.25)
    sizes = files(options.output)
    segments = {name: size for name, size in sizes.items() if name.startswith(".work/map/")}
    written = sum(size for name, size in segments.items() if not name.endswith(".json"))
    assert counts.segment_bytes == pytest.approx(written, rel=0.25)
    shards = sum(size for name, size in sizes.items() if "/wudao/" in name)
    assert counts.shard_bytes == pytest.approx(shards, rel=0.25)
    account = json.loads((tmp_path / "out" / "report.json").read_bytes())
    assert account["tasks"]["map"]["all"] == counts.splits
    assert account["tasks"]["merge"]["all"] == sum(counts.shards.values()) + 1


@pytest.mark.parametrize("flags", [[], ["--dedup", "minhash", "--workers", "3"]])
def test_the_command_prints_a_plan_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: Sequence[str]
) -> None:
    output = tmp_path / "out"
    assert command.main("pipelines.wudao", ["--plan", "--output", str(output), *flags]) == 0
    told = capsys.readouterr().out
    for word in ("wudao", "map", "dedup", "merge", "wall time", "disk", "memory", "through Beam"):
        assert word in told
    assert "requests" not in told
    assert not output.exists()
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob("corpusmill-plan-*"))


def test_a_plan_says_what_is_wrong_with_the_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copyfile(__file__, tmp_path / "part-1.json")
    flags = ["--plan", "--input", str(tmp_path), "--tokenizer", RECIPE.sample_tokenizer]
    assert command.main("pipelines.wudao", flags) == 2
    assert "part-1.json" in capsys.readouterr().err
