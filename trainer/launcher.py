"""Starts the ranks of a machine as torchrun or DeepSpeed does, and ends as they do.

    python -m trainer.launcher torchrun --standalone --nproc-per-node 8 -m trainer.train …
    python -m trainer.launcher deepspeed --num_gpus 8 --module trainer.train …

Asked to stop (SIGTERM, Ctrl-C), torchrun by itself ends with a traceback and code 1, and the
launcher of DeepSpeed leaves its ranks running. Here the ranks save, and the code is 143 or 130. If
a rank fails, its own exit code is that of the launcher.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType
from typing import Any

from shards.shown import tell

_LAUNCHERS = ("torchrun", "deepspeed")
_RUNNER, _LAUNCH = "deepspeed.launcher.runner", "deepspeed.launcher.launch"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_TOLD_BY_RANKS = (2, 130, 143)
"""Exit codes of ranks that have said why they end."""


def main(arguments: Sequence[str]) -> int:
    """Start the ranks, wait for them, and return the exit code."""
    name, *rest = arguments or ("",)
    if name not in _LAUNCHERS:
        tell("usage: python -m trainer.launcher torchrun|deepspeed FLAGS OF THAT LAUNCHER …")
        return 2
    return _torchrun(rest) if name == "torchrun" else _deepspeed(rest)


def _torchrun(arguments: Sequence[str]) -> int:
    # Takes seconds to load.
    from torch.distributed.elastic.multiprocessing.api import SignalException  # noqa: PLC0415
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError  # noqa: PLC0415

    elastic: Any = import_module("torch.distributed.run")  # which has no types
    try:
        elastic.run(elastic.parse_args(list(arguments)))
    except SignalException as stopped:
        return 128 + int(stopped.sigval)
    except ChildFailedError as failed:
        _, first = failed.get_first_failure()
        if first.exitcode not in _TOLD_BY_RANKS:
            tell(str(failed))
        return int(first.exitcode) if first.exitcode > 0 else 1
    return 0


def _deepspeed(arguments: Sequence[str]) -> int:
    # Its own session: a terminal's Ctrl-C then reaches the ranks once, from here.
    runner = subprocess.Popen([sys.executable, "-m", _RUNNER, *arguments], start_new_session=True)
    heard = 0

    def hear(number: int, _frame: FrameType | None) -> None:
        nonlocal heard
        heard = heard or number
        _pass_on(runner.pid, signal.Signals(number))

    for number in _SIGNALS:
        signal.signal(number, hear)
    code = runner.wait()
    return 128 + heard if heard else code if code >= 0 else 128 - code


def _pass_on(runner: int, number: signal.Signals) -> None:
    """Send a signal to all ranks at once: DeepSpeed stops one after the other.

    Where there are none yet, or on other machines only, its own processes get it.
    """
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - DeepSpeed brings it

    try:
        below = psutil.Process(runner).children(recursive=True)
        launches = {p.pid for p in below if _LAUNCH in p.cmdline()}
        ranks = [p.pid for p in below if p.ppid() in launches]
    except psutil.Error:  # one of them ends just now
        return
    for process in ranks or [*launches, runner]:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
