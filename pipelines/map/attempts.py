"""Notes of attempts at a split: that a process died at it, for the attempts after it.

    .work/attempts/<task>-<run>-<random>.json

An attempt writes a note when it begins and deletes it when it ends, whether it succeeds or raises
an error; a note that is left belongs to a process that died. This works the same for the worker
processes of this machine and for engines that repeat tasks by themselves: after three deaths the
task is given up, with the name of its file. A note counts within one run of the driver: a worker
that was killed together with its driver is no evidence against a file.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.execute.workers import MOST_DEATHS
from shards.errors import UserError
from shards.prune import remove_work
from shards.storage.files import file_names, write_json
from shards.storage.remote import AnyPath


@contextmanager
def begin_attempt(work: AnyPath, task: str, *, run: str, description: str) -> Iterator[int]:
    """Yield how many attempts at a task died before; if this process dies, its note stays.

    Args:
        work: The run's folder of intermediate files.
        task: The name of the task's record.
        run: Identifies one run of the driver.
        description: The task in error messages.

    Raises:
        UserError: Too many attempts died already.
    """
    folder = work / "attempts"
    notes = _notes(folder, f"{task}-{run}-")
    if len(notes) >= MOST_DEATHS:
        raise UserError(
            f"{len(notes)} processes died one after the other at the {description}. "
            "Finished work is kept"
        )
    note = folder / f"{task}-{run}-{uuid.uuid4().hex}.json"
    try:
        write_json(note, {})
        yield len(notes)
    except MemoryError:  # the process is about to be ended for it: the note stays
        raise
    except BaseException:
        note.unlink(missing_ok=True)
        raise
    for path in (note, *notes):
        path.unlink(missing_ok=True)


def num_deaths(work: AnyPath, task: str, *, run: str) -> int:
    """Return how many attempts at a task died; arguments as in begin_attempt."""
    return len(_notes(work / "attempts", f"{task}-{run}-"))


def forget_attempts(work: AnyPath, task: str, *, run: str) -> None:
    """Delete the notes of a task, which is done; arguments as in begin_attempt."""
    for note in _notes(work / "attempts", f"{task}-{run}-"):
        note.unlink(missing_ok=True)


def died_before(work: AnyPath) -> bool:
    """Return whether processes died here while they mapped something."""
    return bool(_notes(work / "attempts", ""))


def forget(work: AnyPath) -> None:
    """Delete all notes; no attempt may be under way."""
    remove_work(work, "attempts")


def _notes(folder: AnyPath, prefix: str) -> list[AnyPath]:
    return [folder / name for name in file_names(folder) if name.startswith(prefix)]
