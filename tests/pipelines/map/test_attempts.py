import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pipelines.map.attempts import begin_attempt, died_before, forget
from shards.errors import UserError
from shards.storage.remote import AnyPath, RemotePath


@pytest.fixture(params=["disk", "url"])
def work(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyPath]:
    if request.param == "disk":
        yield tmp_path
        return
    yield RemotePath("memory://bucket/work")
    MemoryFileSystem().store.clear()


def die(work: AnyPath, *, task: str = "t", run: str = "r") -> None:
    """Leave the note of an attempt that died: one that lacks memory is about to be ended for it."""
    with suppress(MemoryError), begin_attempt(work, task, run=run, description="map of x"):
        raise MemoryError


def test_a_full_disk_is_told_and_counts_as_no_death(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(_: int) -> None:
        raise OSError(errno.ENOSPC, "?")

    monkeypatch.setattr(os, "fsync", fsync)
    attempt = begin_attempt(tmp_path, "t", run="r", description="x")
    with pytest.raises(UserError, match=r"no space left on the disk that holds"), attempt:
        pass
    assert not died_before(tmp_path)


def test_deaths_are_counted_until_an_attempt_ends_and_three_give_a_task_up(work: AnyPath) -> None:
    die(work)
    die(work)
    with begin_attempt(work, "t", run="r", description="x") as deaths:
        assert deaths == 2
    assert not died_before(work)  # the split is finished
    for _ in range(3):
        die(work)
    again = begin_attempt(work, "t", run="r", description="map of x")
    with pytest.raises(UserError, match=r"^3 processes died .* at the map of x\. Finished"), again:
        pass


def test_notes_of_other_runs_and_tasks_do_not_count(work: AnyPath) -> None:
    task, other, run = "a" * 24, "b" * 24, "c" * 32
    die(work, task=task, run="d" * 32)
    die(work, task=other, run=run)
    with begin_attempt(work, task, run=run, description="x") as deaths:
        assert deaths == 0
    assert died_before(work)
    forget(work)
    assert not died_before(work)
