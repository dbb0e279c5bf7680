"""Writes the log of a run: JSON lines, TensorBoard, and lines or a progress bar on the terminal.

    RUN/log.jsonl       one line per event, {"event": "train", "step": 20, "loss": 6.1, …}
    RUN/tensorboard/    the same figures

A run that resumes after step n first moves the events of later steps to log.jsonl.1; otherwise they
would be logged twice. Only the first rank writes a log. If log.jsonl cannot be written, the run
ends; if TensorBoard's files cannot be written, it continues without them.
"""

import json
import logging
import math
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any

from tqdm import tqdm

from shards.commands.output import json_text, message, print_message, visible, visible_line
from shards.errors import UserError
from shards.storage.disk import disk_errors_explained
from shards.storage.files import atomic_write, make_folder

NAME = "log.jsonl"
TRAIN, VALIDATION, TASKS, NOTE = "train", "validation", "tasks", "note"
SPEED = "speed"
"""The event with the mean speed of a run that has ended."""
SAMPLE = "sample"
TASK_FIGURES = ("acc", "acc_norm", "perplexity", "word_perplexity")
"""The figures of TASKS, named FIGURE/TASK, that are shown on the terminal and plotted."""

_SHOWN: Mapping[str, str] = {
    "loss": "{:.4f}",
    "accuracy": "{:.3f}",
    "lr": "{:.3g}",
    "grad_norm": "{:.3g}",
    "skipped": "{:,}",
    "ms_per_step": "{:,.0f}",
    "mfu": "{:.1%}",
    "tokens_per_second": "{:,.0f}",
}
"""The figures of an event shown on the terminal, in this order; the files have all figures."""
_SHOWN_IF_ANY = {"skipped"}
"""The figures of `_SHOWN` that are shown only if they are not 0."""
_NAMES: Mapping[str, str] = {
    "grad_norm": "grad norm",
    "ms_per_step": "ms/step",
    "tokens_per_second": "tokens/s",
}

_log = logging.getLogger(__name__)

Monitor = Callable[[str, Mapping[str, float], int], None]
"""Takes an event, its figures, and the number of samples before it."""


class RunLog:
    """The log of a run."""

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
            folder: the run's folder; None to write no files.
            step: the step after which the run resumes; events of later steps are moved away.
            steps: the number of steps of the whole run.
            show: whether to write to the terminal as well.
            monitor: a function that is called with the figures of each event that has a number of
                samples.
        """
        self._steps = steps
        self._monitor = monitor
        self._path = None if folder is None else folder / NAME
        self._file: FileIO | None = None
        self._problem: UserError | None = None
        self._board: _Board | None = None
        if self._path is not None:
            with disk_errors_explained(self._path):
                make_folder(self._path.parent)
                _move_later_events(self._path, step)
                self._file = self._path.open("ab", buffering=0)
            self._board = _Board(self._path.parent / "tensorboard", step)
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
        """Log the figures of an event, and show the main figures on the terminal.

        Args:
            event: TRAIN, VALIDATION and so on.
            step: the step after which the figures were measured.
            figures: the figures by name.
            samples: the number of samples up to the step; None to pass nothing to the monitors.
            line: the line to show on the terminal instead of the figures.
        """
        # JSON has no NaN and no infinity.
        plain = {k: v if math.isfinite(v) else None for k, v in figures.items()}
        self._append({"event": event, "step": step, **plain})
        if self._board is not None:
            self._board.write(partial(_add_scalars, event=event, figures=figures, step=step))
        if samples is not None:
            self._monitor(event, figures, samples)
        shown = [
            f"{_NAMES.get(name, name)} {form.format(figures[name])}"
            for name, form in _SHOWN.items()
            if name in figures and (figures[name] or name not in _SHOWN_IF_ANY)
        ]
        self.show(line or f"step {step:,}/{self._steps:,}  {event}  {'  '.join(shown)}")

    def write_sample(self, step: int, number: int, *, prompt: str, text: str) -> None:
        """Log and show the text that the model has generated for a prompt."""
        self._append(
            {"event": SAMPLE, "step": step, "number": number, "prompt": prompt, "text": text}
        )
        if self._board is not None:
            name, shown = f"{SAMPLE}/{number}", visible(text)
            self._board.write(lambda writer: writer.add_text(name, shown, step))
        self.show(f"step {step:,}/{self._steps:,}  {SAMPLE}  {text}")

    def _append(self, event: Mapping[str, object]) -> None:
        """Append an event to log.jsonl; keep the error if the file cannot be written any more."""
        if self._file is None or self._path is None or self._problem is not None:
            return
        try:
            with disk_errors_explained(self._path):
                left = memoryview(f"{json_text(event)}\n".encode())
                while left:  # if the disk fills up, a part is written before the error
                    left = left[self._file.write(left) :]
        except UserError as error:
            self._problem = error

    def check(self) -> None:
        """Raise the error of log.jsonl if the file could not be written.

        Only the first rank has the file, but all ranks must end, so this is to be called in
        `Ranks.run_on_all_ranks`.

        Raises:
            UserError: the disk is full, or the file cannot be written any more.
        """
        if self._problem is not None:
            raise self._problem

    def show(self, text: str) -> None:
        """Show a line on the terminal; if the terminal is closed, the run continues."""
        with suppress(OSError):
            if self._bar is not None:
                self._bar.write(message(text), file=sys.stderr)
            elif self._show:
                print_message(text)

    def close(self) -> None:
        """Close the files and the progress bar."""
        if self._board is not None:
            self._board.write(lambda writer: writer.close())
        for output in (self._file, self._bar):
            if output is not None:
                output.close()


def _add_scalars(writer: Any, *, event: str, figures: Mapping[str, float], step: int) -> None:
    for name, value in figures.items():
        writer.add_scalar(f"{event}/{visible_line(name)}", value, step)
    writer.flush()


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return None
    return event if isinstance(event.get("step"), int) else None


def read_run_log(folder: Path) -> list[dict[str, Any]]:
    """Return the events in a run's log; lines that are not events are left out.

    Raises:
        UserError: the folder has no log.
    """
    path = folder / NAME
    if not path.is_file():
        raise UserError(f"{folder} has no {NAME}: name the folder that a run was given as --save.")
    return [event for event in map(_event, path.read_bytes().splitlines()) if event is not None]


def _move_later_events(path: Path, step: int) -> None:
    """Move the events after a step from a log to log.jsonl.1."""
    if not path.is_file():
        return
    events = [(line, _event(line)) for line in path.read_bytes().splitlines(keepends=True)]
    later = [line for line, event in events if event is not None and event["step"] > step]
    if later:
        moved = path.with_name(f"{NAME}.1")
        with moved.open("ab") as handle:
            handle.writelines(later)
        _log.info("%d events of later steps are moved from %s to %s", len(later), path, moved)
    with atomic_write(path) as handle:
        for line, event in events:
            if event is not None and event["step"] <= step:
                handle.write(line.rstrip(b"\n") + b"\n")


class _Board:
    """TensorBoard's files; if they cannot be written, the run continues without them."""

    def __init__(self, folder: Path, step: int) -> None:
        """Open files in a folder; TensorBoard shows figures after `step` from these files alone."""
        self._folder = folder
        self._writer: Any = None
        try:
            from torch.utils.tensorboard import (  # noqa: PLC0415 - takes seconds to load
                SummaryWriter,
            )
        except ImportError:
            _log.warning(
                "no TensorBoard log: pip install tensorboard for one; log.jsonl has all figures"
            )
            return
        # TensorBoard then ignores later steps in earlier files of the same folder.
        self._writer = self._attempt(lambda: SummaryWriter(str(folder), purge_step=step + 1))

    def write(self, act: Callable[[Any], None]) -> None:
        """Call a function with TensorBoard's writer, if there is one."""
        if self._writer is not None:
            self._attempt(lambda: act(self._writer))

    def _attempt(self, act: Callable[[], Any]) -> Any:
        """Return a function's result; after an OSError, report it and write nothing more."""
        try:
            return act()
        except OSError as error:
            self._writer = None
            _log.warning(
                "TensorBoard's files in %s cannot be written (%s): they end here; %s has all "
                "figures",
                self._folder,
                error.strerror or error,
                NAME,
            )
            return None
