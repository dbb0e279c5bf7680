"""Kills a command at a chosen moment."""

import itertools
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest


def is_killed_at(moment: int | str, run: Callable[[], int]) -> bool:
    """Run in a process that is killed before it renames its n-th file, or one of this name."""
    child = os.fork()
    if not child:
        renamed = itertools.count(1)
        rename = Path.replace

        def replace_or_die(path: Path, target: Path) -> Path:
            if moment in (next(renamed), target.name):
                os.kill(os.getpid(), signal.SIGKILL)
            return rename(path, target)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "replace", replace_or_die)
            os._exit(run())
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])
