"""What a run tells: lines of JSON, TensorBoard, and a line or a progress bar for the person.

    RUN/log.jsonl       a line an event, {"event": "train", "step": 20, "loss": 6.1, …}
    RUN/tensorboard/    the same figures

A run that goes on from step n first takes away what was told of later steps: they come again, and
would be doubled. Only the first rank keeps a log.
"""

import json
import logging
import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from tqdm import tqdm

from shards.errors import UserError
from shards.storage.files import atomic_write, make_folder

NAME = "log.jsonl"
TRAIN, VALIDATION, NOTE = "train", "validation", "note"

_SHOWN: Mapping[str, str] = {
    "loss": "{:.4f}",
    "accuracy": "{:.3f}",
    "lr": "{:.3g}",
    "grad_norm": "{:.3g}",
    "tokens_per_second": "{:,.0f}",
    "mfu": "{:.1%}",
}
"""What a person is shown of an event, in this order; the files have all of it."""
_NAMES: Mapping[str, str] = {"grad_norm": "grad norm", "tokens_per_second": "tokens/s"}

_log = logging.getLogger(__name__)


class RunLog:
    """The log of a run, open from some step on."""

    def __init__(self, folder: Path | None, *, step: int, steps: int, show: bool) -> None:
        """Open the log.

        Args:
            folder: of the run; None: nothing is kept.
            step: the last step of which the past is kept.
            steps: of the whole run.
            show: tell the person too.
        """
        self._steps = steps
        self._file: TextIO | None = None
        self._board: Any = None
        if folder is not None:
            make_folder(folder)
            _forget_after(folder / NAME, step)
            self._file = (folder / NAME).open("a", encoding="utf-8")
            self._board = _board(folder / "tensorboard", step)
        self._show = show
        self._bar: Any = None
        if show and sys.stderr.isatty():
            self._bar = tqdm(total=steps, initial=step, unit="step", dynamic_ncols=True)

    def advance(self, step: int) -> None:
        """Move the progress bar to a step."""
        if self._bar is not None:
            self._bar.update(step - self._bar.n)

    def write(self, event: str, step: int, figures: Mapping[str, float]) -> None:
        """Keep the figures of an event, and show the main ones."""
        if self._file is not None:
            # JSON has no number for NaN and infinity.
            plain = {k: v if math.isfinite(v) else None for k, v in figures.items()}
            line = {"event": event, "step": step, **plain}
            self._file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
            self._file.flush()
        if self._board is not None:
            for name, value in figures.items():
                self._board.add_scalar(f"{event}/{name}", value, step)
            self._board.flush()
        shown = [
            f"{_NAMES.get(name, name)} {form.format(figures[name])}"
            for name, form in _SHOWN.items()
            if name in figures
        ]
        self.say(f"step {step:,}/{self._steps:,}  {event}  {'  '.join(shown)}")

    def say(self, text: str) -> None:
        """Show a line to the person."""
        if self._bar is not None:
            self._bar.write(text, file=sys.stderr)
        elif self._show:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def close(self) -> None:
        """Close what is open."""
        for each in (self._file, self._board, self._bar):
            if each is not None:
                each.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the events in a log; a line that was cut short by a crash is not among them."""
    events = []
    for line in path.read_text("utf-8").splitlines():
        try:
            events.append(json.loads(line))
        except ValueError:
            continue
    return events


def _forget_after(path: Path, step: int) -> None:
    """Leave in a log only what is of a step up to one."""
    if not path.is_file():
        return
    kept = [event for event in read_log(path) if event["step"] <= step]
    with atomic_write(path) as handle:
        for event in kept:
            handle.write((json.dumps(event, ensure_ascii=False) + "\n").encode())


def _board(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - it takes seconds to load
    except ImportError:
        _log.warning("no TensorBoard log: pip install tensorboard brings it; log.jsonl has it all")
        return None
    # TensorBoard leaves out what an earlier file of the same folder says of later steps.
    writer: Any = SummaryWriter(str(folder), purge_step=step + 1)
    return writer


class Meter:
    """Tokens and samples a second since it was last read, and the share of time spent waiting."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._since = time.perf_counter()
        self._tokens = self._samples = 0
        self._flops = self._waited = 0.0

    def add(self, *, tokens: int, samples: int, flops: float, waited: float) -> None:
        """Count a step; `waited` is the time in seconds that its batch was waited for."""
        self._tokens += tokens
        self._samples += samples
        self._flops += flops
        self._waited += waited

    def pause(self, seconds: float) -> None:
        """Leave out time that was no training."""
        self._since += seconds

    def read(self, *, peak_flops: float | None) -> dict[str, float]:
        """Return the figures since the last call; MFU only where the peak is known."""
        seconds = max(time.perf_counter() - self._since, 1e-9)
        figures = {
            "tokens_per_second": self._tokens / seconds,
            "samples_per_second": self._samples / seconds,
            "waiting": self._waited / seconds,
        }
        if peak_flops:
            figures["mfu"] = self._flops / seconds / peak_flops
        self._begin()
        return figures


def log_of(folder: Path) -> list[dict[str, Any]]:
    """Return the events of a run's folder.

    Raises:
        UserError: it has no log.
    """
    path = folder / NAME
    if not path.is_file():
        raise UserError(f"{folder} has no {NAME}: name the folder that a run was given as --save.")
    return read_log(path)
