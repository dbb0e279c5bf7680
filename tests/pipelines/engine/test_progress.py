import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipelines.engine import progress
from pipelines.engine.progress import Heartbeat, Progress


class Clock:
    """Time that passes only when a test sets it."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def describe(record: Any) -> Mapping[str, int]:
    counts: Mapping[str, int] = record
    return counts


def shown(work: Path, weights: Mapping[str, int], *, stream: io.StringIO | None = None) -> Progress:
    tasks = {work / "map" / f"{name}.json": weight for name, weight in weights.items()}
    return Progress("map", tasks, describe=describe, work=work, stream=stream or io.StringIO())


def finish(work: Path, name: str, **counts: int) -> None:
    (work / "map").mkdir(exist_ok=True)
    (work / "map" / f"{name}.json").write_text(json.dumps(counts))


def beat(work: Path, task: str, done: int, *, rows: int) -> None:
    Heartbeat(work).beat(task, done, rows=rows)


def test_the_line_follows_the_records(tmp_path: Path, clock: Clock) -> None:
    line = shown(tmp_path, {"a": 1, "b": 1, "c": 2})
    assert line.line() == "map   0 % | 0:00"
    clock.now += 60
    finish(tmp_path, "a", documents=1500, kept=1000)
    assert line.line() == "map  25 % | 1,500 documents | 1,000 kept | ETA 3:00"
    finish(tmp_path, "c", documents=500, kept=500)
    assert line.line() == "map  75 % | 2,000 documents | 1,500 kept | ETA 0:20"
    finish(tmp_path, "b", documents=0, kept=0)
    clock.now += 3600
    assert line.line() == "map 100 % | 2,000 documents | 1,500 kept | 1:01:00"


def test_bytes_have_a_speed_and_what_is_under_way_counts(tmp_path: Path, clock: Clock) -> None:
    line = shown(tmp_path, {"a": 40_000_000, "b": 60_000_000})
    clock.now += 10
    beat(tmp_path, "a", 10_000_000, rows=7)
    beat(tmp_path, "b", 10_000_000, rows=5)
    beat(tmp_path, "of another phase", 90_000_000, rows=9)
    assert line.line() == "map  20 % | 12 documents | 2.0 MB/s | ETA 0:40"
    finish(tmp_path, "a", documents=30)  # its heartbeat no longer counts
    assert line.line() == "map  50 % | 35 documents | 5.0 MB/s | ETA 0:10"


def test_a_task_never_counts_more_than_its_weight(tmp_path: Path, clock: Clock) -> None:
    line = shown(tmp_path, {"a": 100, "b": 100})
    clock.now += 10
    beat(tmp_path, "a", 150, rows=1)
    assert line.line().startswith("map  50 % | 1 documents")


def test_the_last_heartbeat_counts_for_a_task_tried_twice(tmp_path: Path, clock: Clock) -> None:
    line = shown(tmp_path, {"a": 100, "b": 100})
    clock.now += 10
    beat(tmp_path, "a", 80, rows=8)
    (path,) = (tmp_path / "progress").iterdir()  # by a worker that died
    os.utime(path, (1, 1))
    beat(tmp_path, "a", 30, rows=3)
    assert line.line().startswith("map  15 % | 3 documents")


def test_broken_heartbeats_are_ignored(tmp_path: Path, clock: Clock) -> None:
    line = shown(tmp_path, {"a": 100})
    beat(tmp_path, "a", 50, rows=1)
    clock.now += 10
    (tmp_path / "progress" / "x.json").write_text("{")
    assert line.line() == "map  50 % | 1 documents | ETA 0:10"


def test_a_heartbeat_that_cannot_be_written_does_not_fail(tmp_path: Path) -> None:
    (tmp_path / "progress").write_text("a file where the folder should be")
    Heartbeat(tmp_path).beat("a", 1, rows=1)
    assert (tmp_path / "progress").is_file()


@pytest.mark.usefixtures("clock")
def test_a_terminal_gets_one_line_that_changes(tmp_path: Path) -> None:
    stream = Terminal()
    with shown(tmp_path, {"a": 1}, stream=stream):
        finish(tmp_path, "a", kept=2)
    assert stream.getvalue().endswith("\r\033[Kmap 100 % | 2 kept | 0:00\n")
    assert stream.getvalue().count("\n") == 1


@pytest.mark.usefixtures("clock")
def test_elsewhere_lines_are_plain(tmp_path: Path) -> None:
    stream = io.StringIO()
    with shown(tmp_path, {"a": 1}, stream=stream):
        finish(tmp_path, "a", kept=2)
    assert stream.getvalue().endswith("map 100 % | 2 kept | 0:00\n")
    assert "\r" not in stream.getvalue()


def test_a_line_that_nobody_reads_fails_nothing(tmp_path: Path) -> None:
    class Closed(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    with shown(tmp_path, {"a": 1}, stream=Closed()):
        finish(tmp_path, "a", documents=1)
    assert (tmp_path / "map" / "a.json").exists()
