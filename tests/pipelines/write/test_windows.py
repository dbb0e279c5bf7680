"""Each firing of a window of a stream becomes exactly one generation."""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

import pyarrow.parquet as pq
import pytest
from apache_beam import WindowInto
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.testing.test_stream import TestStream
from apache_beam.transforms.trigger import (
    AccumulationMode,
    AfterCount,
    AfterProcessingTime,
    AfterWatermark,
)
from apache_beam.transforms.window import (
    FixedWindows,
    GlobalWindows,
    TimestampedValue,
)

from pipelines.execute import beam
from pipelines.transforms import Clean, FromRows, WriteDataset
from shards.manifest import Manifest, read_manifest
from tests.pipelines.runs import content
from tests.pipelines.write.pipes import TOKENIZER, Seen, running

pytestmark = pytest.mark.slow

TestStream.__test__ = False

LATE = {
    "trigger": AfterWatermark(early=AfterProcessingTime(10), late=AfterCount(1)),
    "accumulation_mode": AccumulationMode.DISCARDING,
    "allowed_lateness": 120,
}
ON_TIME: dict[str, Any] = {}
HOUR = 3600
DAY = 24 * HOUR


def text(number: int) -> str:
    """Return a text: one in five equals that of an earlier row, and one in eleven is empty."""
    if number % 11 == 10:
        return " "
    origin = number - 3 if number % 5 == 4 else number
    return f"the note number {origin} of quite a few, which no other note says {origin * 7919}"


def rows_of(numbers: Any, windows: Any, **when: Any) -> Any:
    """Return batches of rows, in windows, that are made of numbers with times."""
    row_type = beam.RowTypeConstraint.from_fields([("text", str), ("number", int)])
    in_windows = numbers | "Into windows" >> WindowInto(windows, **when)
    making = beam.Map(lambda number: beam.Row(text=text(number), number=number))
    return in_windows | "Row" >> making.with_output_types(row_type) | FromRows(id="number")


def to_dataset(batches: Any, output: Path, **options: Any) -> Any:
    """Clean texts, and write both the kept and the dropped ones to a dataset."""
    clean = batches | Clean()
    sink = WriteDataset(
        str(output), tokenizer=TOKENIZER, shards=2, validation=0, dropped=[clean], **options
    )
    return clean.kept | sink


def bounded(output: Path, numbers: Iterable[int], **options: Any) -> Seen:
    """Write some numbers in windows of one minute by a bounded pipeline."""
    with running() as (pipeline, seen):
        values = [TimestampedValue(number, number % DAY) for number in numbers]
        created = pipeline | beam.Create(values) | "Timed" >> beam.Map(lambda number: number)
        seen.watch("made", to_dataset(rows_of(created, FixedWindows(60)), output, **options))
    return seen


def streamed(output: Path, stream: TestStream, when: Any = ON_TIME, **options: Any) -> None:
    """Write a stream in windows of one minute."""
    flags = PipelineOptions([])
    flags.view_as(StandardOptions).streaming = True
    pipeline = beam.Pipeline(runner="BundleBasedDirectRunner", options=flags)
    to_dataset(rows_of(pipeline | stream, FixedWindows(60), **when), output, **options)
    pipeline.run().wait_until_finish()


def numbered(stream: TestStream, *numbers: int) -> TestStream:
    return stream.add_elements([TimestampedValue(number, number) for number in numbers])


def inputs(manifest: Manifest) -> list[str]:
    return [entry.path for generation in manifest.generations for entry in generation.inputs]


def kept_and_dropped(output: Path) -> list[list[int]]:
    """Return each generation's numbers of kept and dropped rows, after checking its audit table."""
    found = []
    for generation in read_manifest(output).generations:
        tables = [pq.read_table(output / table.path) for table in generation.audit]
        account = generation.accounting["rows"]
        rows = sum(table.num_rows for table in tables)
        dropped, bad = (sum(account[name].values()) for name in ("dropped", "quarantined"))
        assert rows == account["read"] == account["kept"] + dropped + bad
        found.append([account["kept"], dropped])
    return found


def test_each_firing_of_a_window_becomes_a_generation(tmp_path: Path) -> None:
    stream = numbered(TestStream().advance_watermark_to(0), 0, 1, 2, 4)
    stream = numbered(stream.advance_processing_time(20), 50).advance_watermark_to(60)
    stream = numbered(stream, 6, 121).advance_watermark_to(240)  # nothing between 60 and 120
    stream = numbered(stream, 10, 122).advance_watermark_to_infinity()  # 10 is too late
    streamed(tmp_path, stream, when=LATE)
    first, third = "rows/1970-01-01T00:00:00Z--1970-01-01T00:01:00Z", "rows/1970-01-01T00:02:00Z"
    third += "--1970-01-01T00:03:00Z"
    manifest = read_manifest(tmp_path)
    assert inputs(manifest) == [
        *(f"{first}/early-0", f"{first}/on-time-1", f"{first}/late-2"),
        *(f"{third}/on-time-0", f"{third}/late-1"),
    ]
    # Row 4 has the same text as row 1.
    assert kept_and_dropped(tmp_path) == [[3, 1], [1, 0], [1, 0], [1, 0], [1, 0]]
    assert len([*(tmp_path / ".work" / "map").glob("*.audit")]) == 1  # of the late row


def test_a_stream_makes_what_bounded_pipelines_of_its_windows_make(tmp_path: Path) -> None:
    stream = TestStream().advance_watermark_to(0)
    for end in (60, 120, 180):
        numbers = [n for n in range(end - 60, end) if n != 10]
        stream = numbered(numbered(stream, *numbers[:20]), *numbers[20:][::-1])
        stream = stream.advance_watermark_to(end)
    stream = numbered(stream, 208)  # a row whose text is empty
    streamed(tmp_path / "stream", stream.advance_watermark_to_infinity(), dedup="minhash")
    for start in (0, 60, 120, 180):
        numbers = range(start, start + 60) if start < 180 else [208]
        bounded(tmp_path / "appended", (n for n in numbers if n != 10), dedup="minhash")
    assert content(tmp_path / "stream") == content(tmp_path / "appended")
    accounts = kept_and_dropped(tmp_path / "stream")
    assert accounts[-1] == [0, 1]
    assert all(dropped >= 12 for _, dropped in accounts[:-1])
    with running() as (pipeline, _):
        whole = pipeline | beam.Create([n for n in range(60) if n != 10])
        to_dataset(rows_of(whole, GlobalWindows()), tmp_path / "plain", dedup="minhash")
    first = read_manifest(tmp_path / "stream").generations[0].name
    plain = read_manifest(tmp_path / "plain").generations[0].name
    assert content(tmp_path / "stream" / first) == content(tmp_path / "plain" / plain)


def test_a_repeated_attempt_finds_its_generations(tmp_path: Path) -> None:
    seen = bounded(tmp_path, range(120))
    assert seen.by_name["made"] == [f"{tmp_path}@1", f"{tmp_path}@2"]
    before = content(tmp_path)
    assert bounded(tmp_path, range(120)).by_name["made"] == []
    assert content(tmp_path) == before
    assert not [*(tmp_path / ".work" / "map").iterdir()]
    # A row was late, but is on time when the window is written again, so nothing is lost.
    again = bounded(tmp_path, [*range(60), DAY + 3])
    assert again.by_name["made"] == [f"{tmp_path}@3"]
    assert kept_and_dropped(tmp_path)[-1] == [1, 60]


def test_segments_that_may_be_waited_for_stay(tmp_path: Path) -> None:
    now = int(time.time())
    names = {
        f"{'a' * 24}-{closes}-{written}.audit": stays
        for closes, written, stays in [
            (59, now - 2 * HOUR, False),
            (59, now, True),  # a firing that was already handed out may need the window
            (7200, now - 2 * HOUR, True),  # the row's window is still open
        ]
    }
    folder = tmp_path / ".work" / "map"
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch()
    bounded(tmp_path, range(60, 120))
    assert sorted(path.name for path in folder.iterdir()) == [
        name for name in sorted(names) if names[name]
    ]


def test_no_worker_forks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fork() -> NoReturn:
        pytest.fail("a worker has threads of gRPC, which a fork may abort")

    with running() as (pipeline, _):
        created = pipeline | beam.Create([*range(9)])
        _ = to_dataset(rows_of(created, GlobalWindows()), tmp_path)
        monkeypatch.setattr(os, "fork", fork)
    assert read_manifest(tmp_path).generations
