"""Ctrl-C while the libraries of a command are imported, which may take seconds."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPPED = 130
"""The exit code after Ctrl-C, as shells have it: 128 + SIGINT."""


def end_at_interrupt() -> None:
    """Let Ctrl-C end this process at once, until the command has begun.

    It has no effect but while `python -m` looks for a command.
    """
    is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if sys.argv[:1] == ["-m"] and is_heard:
        signal.signal(signal.SIGINT, _end)


def begun() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """Let Ctrl-C end this process at once: libraries that are half imported may not hear it."""
    is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_heard:
        signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        if is_heard:
            begun()


def _end(_number: int, _frame: FrameType | None) -> None:
    os.write(sys.stderr.fileno(), b"\n")  # behind the ^C of the terminal
    os._exit(STOPPED)
