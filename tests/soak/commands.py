"""Runs commands of the product through `tests/forks.py`, and may kill them at any moment."""

import importlib
import os
import pathlib
import random
import resource
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from tests import forks

MAX_SECONDS = 240.0
"""The time limit of a command, in seconds, on a busy machine."""
MEMORY_BYTES = 3 << 30
"""The limit on memory that a fork does not share; the language model takes a third of it."""


@dataclass(frozen=True)
class Result:
    """The result of a command."""

    words: tuple[str, ...]
    code: int
    """The exit code, or -9 if the command was killed."""
    output: str
    seconds: float

    @property
    def last_line(self) -> str:
        """The last line of the output."""
        lines = [line for line in self.output.splitlines() if line.strip()]
        return lines[-1] if lines else ""


@dataclass
class Trap:
    """An action to take just before the n-th change of the disk by a command."""

    nth: int
    action: Callable[[], None]
    seen: int = 0

    def install(self) -> None:
        """Install the trap in this process."""
        self._wrap(pathlib.Path, "replace")
        self._wrap(pathlib.Path, "unlink")
        self._wrap(shutil, "rmtree")
        self._wrap(os, "fsync")

    def _wrap(self, owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def trapped(*arguments: Any, **named: Any) -> Any:
            self.seen += 1
            if self.seen == self.nth:
                self.action()
            return function(*arguments, **named)

        setattr(owner, name, trapped)


def kill_group() -> None:
    os.killpg(0, signal.SIGKILL)


@dataclass
class RunningCommand:
    """A command that is running."""

    words: tuple[str, ...]
    job: forks.RunningJob
    log: Path
    began: float = field(default_factory=time.monotonic)

    def poll(self) -> bool:
        """Return whether the command has ended."""
        return self.job.wait(0) is not None

    def wait(self) -> Result:
        """Wait for the result; if it takes too long, kill the command and raise TimeoutError."""
        code = self.job.wait(MAX_SECONDS)
        if code is None:
            self.kill()
            raise TimeoutError(f"{' '.join(self.words)} did not end in {MAX_SECONDS:.0f} s")
        output = self.log.read_text(errors="backslashreplace")
        return Result(self.words, code, output, time.monotonic() - self.began)

    def kill(self) -> None:
        """Kill the command and all processes that it started."""
        for process in self._children():
            _kill(process.pid)
        self.job.kill()

    def kill_worker(self, rng: random.Random) -> bool:
        """Kill one of the workers at random; return whether there was one."""
        workers = [child for child in self._children() if _is_worker(child)]
        if workers:
            _kill(rng.choice(workers).pid)
        return bool(workers)

    def _children(self) -> Sequence[psutil.Process]:
        """Return the processes that the command has started."""
        try:
            return psutil.Process(self.job.pid).children(recursive=True)
        except psutil.Error:
            return []


def _is_worker(process: psutil.Process) -> bool:
    """Return whether a process is a worker, that is, a child of the fork server."""
    try:
        parent = process.parent()
        return parent is not None and "forkserver" in " ".join(parent.cmdline())
    except psutil.Error:
        return False


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def start(
    words: Sequence[str],
    *,
    log: Path,
    trap: Trap | None = None,
    constants: Mapping[str, Mapping[str, int]] | None = None,
    forked: bool = True,
) -> RunningCommand:
    """Start a command.

    Args:
        words: The module and its flags.
        log: The file for its output.
        trap: An action at a change of the disk; requires a fork.
        constants: Values for constants, by module; requires a fork.
        forked: Whether to fork a process that has imported the product; else start a new Python.
    """
    asked = forks.Job(
        words=words,
        folder=str(forks.ROOT),
        outputs=[str(log), str(log)],
        new_process=not forked,
        pickled=forks.pickled_call(partial(_prepare, trap, constants or {})),
    )
    return RunningCommand(tuple(words), forks.start(words[0].partition(".")[0], asked), log)


def _prepare(trap: Trap | None, constants: Mapping[str, Mapping[str, int]]) -> None:
    """Prepare this fork for a command: set the process group, memory limit, constants and trap."""
    os.setpgid(0, 0)
    present = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (present + MEMORY_BYTES, resource.RLIM_INFINITY))
    if constants:  # after a crash, items would run in a worker, which lacks these constants
        importlib.import_module("pipelines.job.build").died_before = lambda _: False  # type: ignore[attr-defined]
    for module, values in constants.items():
        for name, value in values.items():
            setattr(importlib.import_module(module), name, value)
    if trap:
        trap.install()
