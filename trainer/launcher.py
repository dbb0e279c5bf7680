"""Starts the ranks of a machine as torchrun or DeepSpeed does, and ends as they do.

    python -m trainer.launcher torchrun --standalone --nproc-per-node 8 -m trainer.train …
    python -m trainer.launcher deepspeed --num_gpus 8 --module trainer.train …

Asked to stop (SIGTERM, Ctrl-C), torchrun by itself ends with a traceback and code 1, and the
launcher of DeepSpeed leaves its ranks running. Here the ranks save, and the code is 143 or 130; a
closed terminal (SIGHUP) is heard likewise, with 129. If a rank fails, also while it saves, its own
exit code is that of the launcher.

Machines of a hostfile are tried first, and what is wrong with them is told in one paragraph, with
code 2.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from shards.command import REFUSED
from shards.errors import UserError
from shards.program import called_program
from shards.shown import tell
from trainer.exit_codes import FOLDER, codes_left
from trainer.hosts import check_hosts

_LAUNCHERS = ("torchrun", "deepspeed")
_RUNNER, _LAUNCH = "deepspeed.launcher.runner", "deepspeed.launcher.launch"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_OF_SIGNALS = 128
"""Exit codes from here on say which signal ended a process."""
_TOLD_BY_RANKS = (REFUSED, 130, 143)
"""Exit codes of ranks that have said why they end."""


def main(arguments: Sequence[str]) -> int:
    """Start the ranks, wait for them, and return the exit code."""
    name, *rest = arguments or ("",)
    if name not in _LAUNCHERS:
        tell("usage: python -m trainer.launcher torchrun|deepspeed FLAGS OF THAT LAUNCHER …")
        return REFUSED
    if name == "torchrun":
        return _torchrun(rest)
    try:
        check_hosts(rest)
    except UserError as error:
        tell(f"{called_program('trainer.launcher')}: {error}")
        return REFUSED
    return _deepspeed(rest)


def _torchrun(arguments: Sequence[str]) -> int:
    # Takes seconds to load.
    from torch.distributed.elastic.multiprocessing.api import SignalException  # noqa: PLC0415
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError  # noqa: PLC0415

    heard = 0

    def hear_hangup(number: int, _frame: FrameType | None) -> None:
        nonlocal heard
        heard = number
        raise SignalException("the terminal was closed", signal.SIGTERM)

    elastic: Any = import_module("torch.distributed.run")  # which has no types
    parsed = elastic.parse_args(list(arguments))
    # torchrun would pass SIGHUP on as it is, even below nohup, and the ranks would end unsaved.
    heard_by_torchrun = getattr(parsed, "signals_to_handle", "").split(",")
    parsed.signals_to_handle = ",".join(x for x in heard_by_torchrun if x.strip() != "SIGHUP")
    if _is_hangup_heard():
        signal.signal(signal.SIGHUP, hear_hangup)
    with TemporaryDirectory(prefix="exit-codes-") as folder:
        os.environ[FOLDER] = folder
        try:
            elastic.run(parsed)
        except SignalException as stopped:
            own = [code for code in codes_left(Path(folder)) if 0 < code < _OF_SIGNALS]
            return own[0] if own else _OF_SIGNALS + (heard or int(stopped.sigval))
        except ChildFailedError as failed:
            _, first = failed.get_first_failure()
            if first.exitcode not in _TOLD_BY_RANKS:
                tell(str(failed))
            return int(first.exitcode) if first.exitcode > 0 else 1
    return 0


def _deepspeed(arguments: Sequence[str]) -> int:
    if find_spec("deepspeed") is None:  # told here: the child would show Python's own words
        raise ModuleNotFoundError("No module named 'deepspeed'", name="deepspeed")
    # Its own session: a terminal's Ctrl-C then reaches the ranks once, from here.
    runner = subprocess.Popen([sys.executable, "-m", _RUNNER, *arguments], start_new_session=True)
    heard, ranks_told = 0, False

    def hear(number: int, _frame: FrameType | None) -> None:
        nonlocal heard, ranks_told
        heard = heard or number
        ranks_told = _pass_on(runner.pid, signal.Signals(number))

    for number in (*_SIGNALS, *([signal.SIGHUP] if _is_hangup_heard() else [])):
        signal.signal(number, hear)
    code = runner.wait()
    if heard and not (ranks_told and 0 < code < _OF_SIGNALS):
        return _OF_SIGNALS + heard
    return code if code >= 0 else _OF_SIGNALS - code


def _is_hangup_heard() -> bool:
    """Return whether a closed terminal ends this process: not below nohup."""
    return signal.getsignal(signal.SIGHUP) != signal.SIG_IGN


def _pass_on(runner: int, number: signal.Signals) -> bool:
    """Send a signal to all ranks at once, SIGHUP as SIGTERM: DeepSpeed stops one after the other.

    Where there are none yet, or on other machines only, its own processes get it.

    Returns:
        Whether there are ranks here.
    """
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - DeepSpeed brings it

    below: list[Any] = []
    launches, ranks = set(), []
    with suppress(psutil.Error):  # it ends just now
        below = psutil.Process(runner).children(recursive=True)
    # One by one: a process that has ended, a zombie among them, tells nothing.
    for process in below:
        with suppress(psutil.Error):
            if _LAUNCH in process.cmdline():
                launches.add(process.pid)
    for process in below:
        with suppress(psutil.Error):
            if process.ppid() in launches:
                ranks.append(process.pid)
    for pid in ranks or [*launches, runner]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM if number == signal.SIGHUP else number)
    return bool(ranks)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
