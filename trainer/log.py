"""What a run reports: lines of JSON, TensorBoard, and lines or a progress bar on the terminal.

    RUN/log.jsonl       one line per event, {"event": "train", "step": 20, "loss": 6.1, …}
    RUN/tensorboard/    the same figures

A run that resumes after step n first removes what was logged for later steps, which would otherwise
be there twice. Only the first rank keeps a log.
"""

import json
import logging
import math
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from tqdm import tqdm

from shards.errors import UserError
from shards.shown import json_text, message, tell, visible, visible_line
from shards.storage.files import atomic_write, make_folder

NAME = "log.jsonl"
TRAIN, VALIDATION, TASKS, NOTE = "train", "validation", "tasks", "note"
SPEED = "speed"
"""Of a run that has ended, as a whole."""
SAMPLE = "sample"
TASK_FIGURES = ("acc", "acc_norm", "perplexity", "word_perplexity")
"""Of TASKS, named FIGURE/TASK: those that are shown on the terminal and drawn."""

_SHOWN: Mapping[str, str] = {
    "loss": "{:.4f}",
    "accuracy": "{:.3f}",
    "lr": "{:.3g}",
    "grad_norm": "{:.3g}",
    "ms_per_step": "{:,.0f}",
    "mfu": "{:.1%}",
    "tokens_per_second": "{:,.0f}",
}
"""The figures of an event shown on the terminal, in this order; the files have all of them."""
_NAMES: Mapping[str, str] = {
    "grad_norm": "grad norm",
    "ms_per_step": "ms/step",
    "tokens_per_second": "tokens/s",
}

_log = logging.getLogger(__name__)

Monitor = Callable[[str, Mapping[str, float], int], None]
"""Takes an event, its figures, and the number of samples up to it."""


class RunLog:
    """The log of a run, open from some step on."""

    def __init__(
        self,
        folder: Path | None,
        *,
        step: int,
        steps: int,
        show: bool,
        monitor: Monitor = lambda *_: None,
    ) -> None:
        """Open the log.

        Args:
            folder: of the run; None: write no files.
            step: the last step whose events are kept from before.
            steps: of the whole run.
            show: write to the terminal as well.
            monitor: is told what was counted up to a number of samples, too.
        """
        self._steps = steps
        self._monitor = monitor
        self._file: TextIO | None = None
        self._board: Any = None
        if folder is not None:
            make_folder(folder)
            _drop_later_events(folder / NAME, step)
            self._file = (folder / NAME).open("a", encoding="utf-8")
            self._board = _open_tensorboard(folder / "tensorboard", step)
        self._show = show
        self._bar: Any = None
        if show and sys.stderr.isatty():
            self._bar = tqdm(total=steps, initial=step, unit="step", dynamic_ncols=True)

    def advance(self, step: int) -> None:
        """Move the progress bar to a step."""
        if self._bar is not None:
            self._bar.update(step - self._bar.n)

    def write(
        self,
        event: str,
        step: int,
        figures: Mapping[str, float],
        *,
        samples: int | None = None,
        line: str | None = None,
    ) -> None:
        """Log the figures of an event, and show the main ones.

        Args:
            event: what they are of.
            step: after which they were counted.
            figures: by name.
            samples: how many were taken up to the step; None: the monitors hear nothing.
            line: what is shown instead.
        """
        if self._file is not None:
            # JSON has no NaN and no infinity.
            plain = {k: v if math.isfinite(v) else None for k, v in figures.items()}
            self._file.write(json_text({"event": event, "step": step, **plain}) + "\n")
            self._file.flush()
        if self._board is not None:
            for name, value in figures.items():
                self._board.add_scalar(f"{event}/{visible_line(name)}", value, step)
            self._board.flush()
        if samples is not None:
            self._monitor(event, figures, samples)
        shown = [
            f"{_NAMES.get(name, name)} {form.format(figures[name])}"
            for name, form in _SHOWN.items()
            if name in figures
        ]
        self.say(line or f"step {step:,}/{self._steps:,}  {event}  {'  '.join(shown)}")

    def write_sample(self, step: int, number: int, *, prompt: str, text: str) -> None:
        """Log and show what the model makes of a prompt."""
        if self._file is not None:
            line = {"event": SAMPLE, "step": step, "number": number, "prompt": prompt, "text": text}
            self._file.write(json_text(line) + "\n")
            self._file.flush()
        if self._board is not None:
            self._board.add_text(f"{SAMPLE}/{number}", visible(text), step)
        self.say(f"step {step:,}/{self._steps:,}  {SAMPLE}  {text}")

    def say(self, text: str) -> None:
        """Show a line on the terminal; if nobody reads it any more, the run goes on."""
        with suppress(OSError):
            if self._bar is not None:
                self._bar.write(message(text), file=sys.stderr)
            elif self._show:
                tell(text)

    def close(self) -> None:
        """Close files and progress bar."""
        for output in (self._file, self._board, self._bar):
            if output is not None:
                output.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the events in a log, without a line that a crash cut short, or that is no event."""
    return [event for event in map(_event, path.read_bytes().splitlines()) if event is not None]


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return None
    return event if isinstance(event.get("step"), int) else None


def read_run_log(folder: Path) -> list[dict[str, Any]]:
    """Return the events in the log of a run's folder.

    Raises:
        UserError: it has no log.
    """
    path = folder / NAME
    if not path.is_file():
        raise UserError(f"{folder} has no {NAME}: name the folder that a run was given as --save.")
    return read_log(path)


def _drop_later_events(path: Path, step: int) -> None:
    """Keep in a log only the events up to a step."""
    if not path.is_file():
        return
    events = ((line, _event(line)) for line in path.read_bytes().splitlines())
    kept = [line for line, event in events if event is not None and event["step"] <= step]
    with atomic_write(path) as handle:
        for line in kept:
            handle.write(line + b"\n")


def _open_tensorboard(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - takes seconds to load
    except ImportError:
        _log.warning(
            "no TensorBoard log: pip install tensorboard for one; log.jsonl has all figures"
        )
        return None
    # TensorBoard then ignores later steps in earlier files of the same folder.
    writer: Any = SummaryWriter(str(folder), purge_step=step + 1)
    return writer


class Meter:
    """Speed since the last reading, and the share of time spent waiting."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget what was counted so far."""
        self._since = time.perf_counter()
        self.steps = self._tokens = self._samples = 0
        self._flops = self._waited = 0.0

    def add(self, *, tokens: int, samples: int, flops: float, waited: float) -> None:
        """Count a step; `waited` is how long, in seconds, it waited for its batch."""
        self.steps += 1
        self._tokens += tokens
        self._samples += samples
        self._flops += flops
        self._waited += waited

    def pause(self, seconds: float) -> None:
        """Exclude time that was not spent training."""
        self._since += seconds

    def read(self, *, peak_flops: float | None) -> dict[str, float]:
        """Return the figures since the last call; MFU only if the peak is known."""
        seconds = max(time.perf_counter() - self._since, 1e-9)
        figures = {
            "ms_per_step": 1000 * seconds / max(1, self.steps),
            "tokens_per_second": self._tokens / seconds,
            "samples_per_second": self._samples / seconds,
            "waiting": self._waited / seconds,
        }
        if peak_flops:
            figures["mfu"] = self._flops / seconds / peak_flops
        self.restart()
        return figures
