"""Ctrl-C, SIGTERM, SIGUSR1, a closed terminal: noted at once, obeyed by all ranks at one step."""

import os
import signal
from contextlib import suppress
from types import FrameType
from typing import Any

import torch

from shards.shown import tell
from trainer.ranks import Ranks

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


class Stop:
    """Remembers, within its `with` block, whether this process was asked to stop.

    Launchers pass signals on to one rank after another, some of them twice; so no signal ends a
    process by itself, and the ranks agree on the step to stop at.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._heard = dict.fromkeys(_SIGNALS, False)
        self._former_handlers: dict[int, Any] = {}
        self._is_told = os.environ.get("RANK", "0") != "0"

    def __enter__(self) -> "Stop":
        for number in _SIGNALS:
            if signal.getsignal(number) == signal.SIG_IGN:
                continue  # below nohup no closed terminal ends a process
            self._former_handlers[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former_handlers.items():
            signal.signal(number, handler)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        self._tell()
        self._heard[signal.Signals(number)] = True

    def _tell(self) -> None:
        """Say once, on the first rank, what comes."""
        if not self._is_told:
            self._is_told = True
            with suppress(OSError):  # the terminal may be closed
                tell("stopping: this step is finished, then the run is saved", start="\n")

    @property
    def is_asked(self) -> bool:
        """Whether this process was asked; the other ranks may not know it yet."""
        return any(self._heard.values())

    def exit_code(self) -> int:
        """Return 128 + the signal if any rank was asked to stop, else 0; all ranks call this."""
        counts = self._ranks.sum(
            torch.tensor([int(heard) for heard in self._heard.values()])
        ).tolist()
        codes = [128 + number for number, count in zip(_SIGNALS, counts, strict=True) if count]
        if codes:
            self._tell()  # another rank may have been asked alone
        return max(codes, default=0)
