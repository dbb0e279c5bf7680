"""Which files have settled at given times, and the log lines about those that have not."""

from dataclasses import replace

import pytest

from pipelines.job.arrivals import (
    FIRST_PAUSE,
    GROWING,
    NAMED_AFTER,
    Arrivals,
)
from pipelines.read.files import InputFile
from pipelines.read.listing import Listing

NOW = 1e9
A = InputFile(source="s", path="/in/a", relative="a", bytes=1, mtime_ns=0)
B = replace(A, path="/in/b", relative="b")


def changed(file: InputFile, times: int = 1) -> InputFile:
    return replace(file, bytes=file.bytes + times)


def scan(
    arrivals: Arrivals,
    now: float,
    *files: InputFile,
) -> list[InputFile]:
    """Return the files that are ready after a scan at `now` seconds."""
    arrivals.scan(Listing(files=[*files], refused={}), dataset={}, now=NOW + now)
    return [*arrivals.ready(NOW + now)]


def test_a_file_settles_once_it_has_not_changed_or_by_its_own_time() -> None:
    arrivals = Arrivals(10)
    old = replace(B, mtime_ns=int((NOW - 10) * 1e9))
    unfinished = [replace(old, path=f"/in/{name}", relative=name) for name in ("x.part", "x.TMP")]
    assert scan(arrivals, 0, A, old, *unfinished) == [old]
    assert scan(arrivals, 9, A, old) == [old]
    assert scan(arrivals, 10, changed(A), old) == [old]
    assert scan(arrivals, 19, changed(A), old) == [old]
    assert scan(arrivals, 20, changed(A), old) == [changed(A), old]
    assert arrivals.first_seen() == {changed(A): NOW, old: NOW}


def test_what_keeps_changing_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    arrivals = Arrivals(10)
    for step in range(int(2.5 * NAMED_AFTER / 5)):
        assert scan(arrivals, 5 * step, changed(A, step)) == []
        assert bool(caplog.messages) == (5 * step >= NAMED_AFTER + 10)
    assert caplog.messages == [f"/in/a {GROWING}"]


def test_files_that_do_not_match_are_news_once(caplog: pytest.LogCaptureFixture) -> None:
    arrivals = Arrivals(10, unmatched=["/in/old.csv"])
    for now in range(0, 60, 5):
        new = ["/in/x.csv", "/in/y.md", "/in/z.jsonl.part"] * (now >= 20) + ["/in/w"] * (now == 5)
        there = Listing(files=[], refused={}, unmatched=["/in/old.csv", *new])
        arrivals.scan(there, dataset={}, now=NOW + now)
        assert bool(caplog.messages) == (now >= 30)
    (line,) = caplog.messages
    assert line.startswith("2 files in /in not read: 1 .csv, 1 .md (x.csv, y.md). Convert CSV")


def test_a_file_that_failed_is_tried_again_later_and_when_it_changes() -> None:
    arrivals = Arrivals(0)
    now, pauses = 0.0, []
    scan(arrivals, now, A)
    for _ in range(9):
        arrivals.record_attempts([], failed={A: "odd"}, now=NOW + now)
        failed = now
        while not scan(arrivals, now, A):
            now += FIRST_PAUSE
        pauses.append((now - failed) / FIRST_PAUSE)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    arrivals.record_attempts([], failed={A: "odd"}, now=NOW + now)
    assert scan(arrivals, now, changed(A)) == [changed(A)]
    assert arrivals.failed() == {}
    arrivals.record_attempts([], failed={changed(A): "odd"}, now=NOW + now)
    arrivals.record_attempts([changed(A)], failed={}, now=NOW + now)
    assert arrivals.failed() == {}


def test_a_file_in_a_folder_that_cannot_be_listed_for_a_while_is_not_forgotten() -> None:
    arrivals = Arrivals(0)
    inside = replace(A, path="/in/d/a", relative="d/a")
    folder = replace(A, path="/in/d", relative="d/")
    scan(arrivals, 0, inside)
    arrivals.record_attempts([], failed={inside: "odd"}, now=NOW)
    arrivals.scan(Listing(files=[], refused={folder: "no permission"}), dataset={}, now=NOW + 1)
    assert arrivals.first_seen() == {}
    assert scan(arrivals, 2, inside) == []
    assert arrivals.first_seen() == {inside: NOW}
    assert arrivals.failed() == {inside: "odd"}
