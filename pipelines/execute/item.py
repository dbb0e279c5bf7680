"""Runs items one at a time with a function that is prepared once per process."""

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
from shards.memory import is_out_of_memory

RunItem = Callable[[Any], None]
"""Runs one item."""

_ONE_AT_A_TIME = threading.Lock()


def packed(prepare: Callable[[Any], Any], argument: Any) -> bytes:
    """Return the payload from which `run_packed` makes the function that runs items."""
    return pickle.dumps((prepare, argument))


def run_packed(payload: bytes, item: Any) -> None:
    """Run an item with a function that is prepared once per process, since models load slowly.

    Engines may give a process several items at once, in threads; the threads take turns, because
    the function has buffers and memory for only one item.

    Raises:
        UserError: The item failed in a way that the user can fix, or ran out of memory. On this
            machine, lack of memory ends the worker process instead: the driver tries the item
            again, finally with no other item running.
    """
    try:
        with _ONE_AT_A_TIME:
            _run_item_of(payload)(item)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        if multiprocessing.parent_process():
            os.kill(os.getpid(), signal.SIGKILL)
        raise UserError(
            f"there is not enough memory for the {item}: use a machine with more, or raise "
            "the limit (ulimit -v). Finished work is kept; the same command continues from it"
        ) from error


def last_line(error: Exception) -> str:
    """Return the last line of an error's traceback, no matter which process raised it."""
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[-1].strip()


@lru_cache(maxsize=1)
def _run_item_of(payload: bytes) -> RunItem:
    prepare, argument = pickle.loads(payload)
    run_item: RunItem = prepare(argument)
    return run_item
