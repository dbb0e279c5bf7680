"""What a process does with a task, whoever hands it out: prepare once, run one at a time."""

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from shards.errors import UserError
from shards.memory import is_lack_of_memory
from shards.storage.remote import AnyPath

RunTask = Callable[[Any], AnyPath | None]
"""Runs one task; returns the path of its record, where it leaves one."""

_ONE_AT_A_TIME = threading.Lock()


def packed(prepare: Callable[[Any], Any], argument: Any) -> bytes:
    """Return what `run_packed` makes the function of that runs tasks: prepare(argument)."""
    return pickle.dumps((prepare, argument))


def run_packed(payload: bytes, task: Any) -> AnyPath | None:
    """Run a task with a function that is prepared once per process: models are slow to load.

    Engines may give a process several tasks at once, in threads; these take turns, because the
    function holds buffers and memory for one task.

    Returns:
        What the function returned.

    Raises:
        UserError: The task failed in a way that the user can fix; also for lack of memory, which
            ends a worker process of this machine: the driver tries again, in the end alone.
    """
    try:
        with _ONE_AT_A_TIME:
            return _run_task_of(payload)(task)
    except Exception as error:
        if not is_lack_of_memory(error):
            raise
        if multiprocessing.parent_process():
            os.kill(os.getpid(), signal.SIGKILL)
        raise UserError(
            f"there is not enough memory for the {task}: use a machine with more, or raise "
            "the limit (ulimit -v). Finished work is kept; the same command continues from it"
        ) from error


def last_line(error: Exception) -> str:
    """Return the last line of an error's traceback, in whichever process it was raised."""
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[-1].strip()


@lru_cache(maxsize=1)
def _run_task_of(payload: bytes) -> RunTask:
    prepare, argument = pickle.loads(payload)
    run_task: RunTask = prepare(argument)
    return run_task
