"""Processes of engines: started beneath a guard, waited for, ended whatever happens."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

GUARD = Path(__file__).with_name("guard.py")
Process = subprocess.Popen[bytes]


def free_port() -> int:
    """A port of localhost that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@contextmanager
def started(
    command: Sequence[object],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Iterator[Process]:
    """Yield the guard of a command; with the block it ends, and all that the command started."""
    words = [sys.executable, str(GUARD), *map(str, command)]
    with log.open("wb") as told:
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=told, stderr=told, env=env, cwd=cwd
        )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=30)


def guarded(process: Process) -> psutil.Process:
    """The command itself, below its guard."""
    (found,) = psutil.Process(process.pid).children()
    return found


def wait_until(
    ready: Callable[[], bool], process: Process, *, log: Path, seconds: float = 120
) -> None:
    """Wait until something is so; say with the log why it never was."""
    end = time.monotonic() + seconds
    while not ready():
        if process.poll() is not None or time.monotonic() > end:
            told = log.read_text(errors="replace")[-4000:]
            raise RuntimeError(f"{log.stem} ended or took longer than {seconds} s: {told}")
        time.sleep(0.1)


def answers(port: int, address: str = "127.0.0.1") -> bool:
    """Whether somebody listens on a port."""
    with socket.socket() as tried:
        tried.settimeout(1)
        return tried.connect_ex((address, port)) == 0
