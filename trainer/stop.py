"""Ctrl-C and SIGTERM: heard at once, obeyed by all ranks at the same step."""

import signal
import sys
from types import FrameType
from typing import Any

import torch

from trainer.ranks import Ranks

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Remembers, inside its block, whether this process was asked to stop.

    Launchers pass signals on one rank after another, and some twice; so none ends a process by
    itself, and the ranks agree on the step to stop at.
    """

    def __init__(self) -> None:
        self._heard = dict.fromkeys(_SIGNALS, 0)
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Stop":
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if not any(self._heard.values()):
            sys.stderr.write("\nstopping: the step ends, then the run is saved\n")
        self._heard[signal.Signals(number)] = 1

    def agreed(self, ranks: Ranks) -> int:
        """Return the exit code of a run that was asked to stop, on any rank; 0: it was not."""
        heard = ranks.sum(torch.tensor(list(self._heard.values()))).tolist()
        codes = [128 + number for number, times in zip(_SIGNALS, heard, strict=True) if times]
        return max(codes, default=0)
