"""Processes items, whoever hands them out: prepare once, run one at a time."""

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

DoItem = Callable[[Any], AnyPath | None]
"""Runs one item; returns the path of its record, where it leaves one."""

_ONE_AT_A_TIME = threading.Lock()


def packed(prepare: Callable[[Any], Any], argument: Any) -> bytes:
    """Return the argument from which `run_packed` makes the function that runs items."""
    return pickle.dumps((prepare, argument))


def run_packed(payload: bytes, item: Any) -> AnyPath | None:
    """Run an item with a function that is prepared once per process: models are slow to load.

    Engines may give a process several items at once, in threads; these take turns, because the
    function holds buffers and memory for one item.

    Returns:
        What the function returned.

    Raises:
        UserError: The item failed in a way that the user can fix; also for lack of memory, which
            ends a worker process of this machine: the driver tries again, in the end alone.
    """
    try:
        with _ONE_AT_A_TIME:
            return _do_item_of(payload)(item)
    except Exception as error:
        if not is_lack_of_memory(error):
            raise
        if multiprocessing.parent_process():
            os.kill(os.getpid(), signal.SIGKILL)
        raise UserError(
            f"there is not enough memory for the {item}: use a machine with more, or raise "
            "the limit (ulimit -v). Finished work is kept; the same command continues from it"
        ) from error


def last_line(error: Exception) -> str:
    """Return the last line of an error's traceback, in whichever process it was raised."""
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[-1].strip()


@lru_cache(maxsize=1)
def _do_item_of(payload: bytes) -> DoItem:
    prepare, argument = pickle.loads(payload)
    do_item: DoItem = prepare(argument)
    return do_item
