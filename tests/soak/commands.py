"""Commands as processes: forked from this one, which has imported everything, or started anew.

A forked command runs `main` of the same program in a process group of its own, with its output in a
file: a tenth of what starting Python and importing takes, so that a case lasts a second.
"""

import ctypes
import importlib
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from shards.console import run_module

ROOT = Path(__file__).parents[2]
PR_SET_PDEATHSIG = 1
LIMIT = 240.0
"""Seconds that a command may take on a busy machine."""
MEMORY_BYTES = 3 << 30
"""What a forked one may take beside what it shares; the model of languages is a third of that."""


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    words: tuple[str, ...]
    code: int
    """As subprocess has it: -9 if it was killed."""
    output: str
    seconds: float

    @property
    def said(self) -> str:
        """Its last paragraph."""
        lines = [line for line in self.output.splitlines() if line.strip()]
        return lines[-1] if lines else ""


@dataclass
class Trap:
    """What happens at the n-th time that a command is about to change the disk."""

    nth: int
    action: Callable[[], None]
    seen: int = 0

    def set(self) -> None:
        """Set it in this process."""
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


def die_with_parent() -> None:
    """Let this process be killed when the one that forked it ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def kill_group() -> None:
    os.killpg(0, signal.SIGKILL)


@dataclass
class Started:
    """A command that runs."""

    words: tuple[str, ...]
    pid: int
    log: Path
    code: int | None = None
    began: float = field(default_factory=time.monotonic)

    def poll(self) -> bool:
        """Return whether it has ended."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def wait(self, *, seconds: float = LIMIT) -> Done:
        """Return how it ended; raise TimeoutError if it does not, after killing it."""
        end = time.monotonic() + seconds
        pause = 0.001
        while not self.poll():
            if time.monotonic() > end:
                self.kill()
                raise TimeoutError(f"{' '.join(self.words)} did not end in {seconds:.0f} s")
            time.sleep(pause)
            pause = min(0.02, pause * 1.5)
        assert self.code is not None
        output = self.log.read_text(errors="backslashreplace")
        return Done(self.words, self.code, output, time.monotonic() - self.began)

    def children(self) -> Sequence[psutil.Process]:
        """Return its processes besides itself that do tasks."""
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.Error:
            return []

    def kill(self) -> None:
        """Kill it and all its processes."""
        for process in [*self.children()]:
            _kill(process.pid)
        _kill(self.pid)
        self.wait(seconds=60)

    def kill_worker(self, rng: random.Random) -> bool:
        """Kill one of its workers; return whether there was one."""
        workers = [child for child in self.children() if _is_worker(child)]
        if workers:
            _kill(rng.choice(workers).pid)
        return bool(workers)


def _is_worker(process: psutil.Process) -> bool:
    """Return whether it is a grandchild: children are the fork server and the tracker."""
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
) -> Started:
    """Start a command.

    Args:
        words: The module and its flags.
        log: Where its output goes.
        trap: What happens to it while it works; forked ones only.
        constants: By module, constants of it that are set first; forked ones only.
        forked: Fork this process; or start Python anew.
    """
    if not forked:
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        process.returncode = 0  # it is waited for here
        return Started(tuple(words), process.pid, log)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        _become(words, log, trap, constants or {})
    with suppress(OSError):  # it has done so itself, or ended
        os.setpgid(pid, pid)
    return Started(tuple(words), pid, log)


def _become(
    words: Sequence[str],
    log: Path,
    trap: Trap | None,
    constants: Mapping[str, Mapping[str, int]],
) -> None:
    """Run a command in this process and end it."""
    code = 1
    try:
        os.setpgid(0, 0)
        die_with_parent()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        present = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
        limit = present + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.RLIM_INFINITY))
        if constants:  # after a death, tasks run in a worker, which would not have them
            importlib.import_module("pipelines.run.build").died_before = lambda _: False  # type: ignore[attr-defined]
        for module, values in constants.items():
            for name, value in values.items():
                setattr(importlib.import_module(module), name, value)
        if trap:
            trap.set()
        code = _main(words)
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else 1
    except BaseException:  # noqa: BLE001 - a traceback is what a case looks for
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _main(words: Sequence[str]) -> int:
    module, *flags = words
    if module == "shards":
        return importlib.import_module("shards.__main__").main(flags)  # type: ignore[no-any-return]
    if module in ("pipelines.rethreshold", "pipelines.report"):
        return run_module(module, flags)
    return importlib.import_module("pipelines.run.command").main(module, flags)  # type: ignore[no-any-return]
