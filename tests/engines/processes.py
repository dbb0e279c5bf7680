"""Starts processes of engines under a guard, which ends them in any case."""

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


@contextmanager
def started(
    command: Sequence[object],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Iterator[Process]:
    """Yield the guard of a command; the block's end kills the command and its descendants."""
    words = [sys.executable, str(GUARD), *map(str, command)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=output, stderr=output, env=env, cwd=cwd
        )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=30)


def guarded(process: Process) -> psutil.Process:
    """Return the command that runs under a guard."""
    (command,) = psutil.Process(process.pid).children()
    return command


def wait_until(
    ready: Callable[[], bool], process: Process, *, log: Path, seconds: float = 120
) -> None:
    """Wait until `ready` is true; if it stays false, fail with the end of the log."""
    end = time.monotonic() + seconds
    while not ready():
        if process.poll() is not None or time.monotonic() > end:
            end_of_log = log.read_text(errors="replace")[-4000:]
            raise RuntimeError(f"{log.stem} ended or took longer than {seconds} s: {end_of_log}")
        time.sleep(0.1)


def answers(port: int, address: str = "127.0.0.1") -> bool:
    """Return whether a port accepts connections."""
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex((address, port)) == 0
