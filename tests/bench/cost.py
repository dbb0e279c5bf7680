"""Measures the time, the CPU time and the memory of commands and all their processes."""

import ctypes
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import psutil

from tests.bench.inputs import ROOT

Command = Sequence[object]

_PR_SET_CHILD_SUBREAPER = 36
_SAMPLES_PER_SECOND = 5


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The total costs of some commands, and the commands' output."""

    cpu: float
    """The CPU time of all processes in seconds."""
    seconds: float
    rss: int
    """The peak resident memory of all processes together, in bytes; shared pages count for each
    process."""
    out: str


def run_measured(*commands: Command) -> Cost:
    """Run commands at the same time, wait until all have ended, and return the costs.

    Raises:
        RuntimeError: A command failed.
    """
    before, started, rss = children_cpu(), time.monotonic(), 0
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        running = [
            subprocess.Popen([*map(str, command)], cwd=ROOT, stdout=out, stderr=err)
            for command in commands
        ]
        while any([process.poll() is None for process in running]):
            rss = max(rss, sum(_rss(process.pid) for process in running))
            time.sleep(1 / _SAMPLES_PER_SECOND)
        seconds = time.monotonic() - started
        for file in (out, err):
            file.seek(0)
        if any(process.returncode for process in running):
            raise RuntimeError(f"{commands} failed:\n{err.read()[-2000:]}")
        return Cost(cpu=children_cpu() - before, seconds=seconds, rss=rss, out=out.read())


def children_cpu() -> float:
    """Wait until all children have ended, and return the children's CPU time in seconds.

    The workers of a run are children of a fork server, which outlives the run by a moment. From the
    first call on, orphans become children of this process.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _rss(pid: int) -> int:
    """Return the resident memory of a process and its descendants in bytes."""
    found = 0
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                found += process.memory_info().rss
    return found
