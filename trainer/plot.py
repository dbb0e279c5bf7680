"""Plots the curves of runs: `python -m trainer.plot RUN [RUN …] [--output FILE.png]`."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from shards.commands.command import Command
from shards.commands.flags import WORD, local_path, option
from shards.commands.output import print_line, visible_line
from shards.console import run_module
from shards.errors import UserError
from shards.storage.disk import disk_errors_explained
from trainer.log import TASK_FIGURES, TASKS, TRAIN, VALIDATION, read_run_log

_PANELS = (
    (TRAIN, "loss", "training loss, nats per token"),
    (VALIDATION, "loss", "validation loss, nats per token"),
    (VALIDATION, "accuracy", "validation token accuracy"),
    (TRAIN, "lr", "learning rate"),
)
_OF_TASKS = tuple((TASKS, figure, f"tasks: {figure}") for figure in TASK_FIGURES)
"""Further panels, drawn if a run has such figures."""
Curve = tuple[list[int], list[float]]


def curves(events: Sequence[dict[str, Any]], event: str, figure: str) -> dict[str, Curve]:
    """Return steps and values of a figure, by source and objective; the key "" is the total."""
    by_part: dict[str, Curve] = {}
    for line in events:
        if line["event"] != event:
            continue
        for name, value in line.items():
            head, _, part = name.partition("/")
            if head == figure and isinstance(value, int | float):
                steps, values = by_part.setdefault(part, ([], []))
                steps.append(line["step"])
                values.append(value)
    return by_part


def draw(folders: Sequence[Path], output: Path) -> None:
    """Write the curves of runs to a picture.

    Raises:
        UserError: matplotlib is not installed, or a run has no log.
    """
    runs = {folder.name: read_run_log(folder) for folder in folders}
    try:
        import matplotlib  # noqa: PLC0415 - only pictures need it
    except ImportError as error:
        raise UserError(
            "pictures need matplotlib: pip install 'corpusmill[report]', or pip install matplotlib."
        ) from error
    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415 - after the backend is chosen

    panels = _panels(runs.values())
    rows = -(-len(panels) // 2)
    figure, axes = pyplot.subplots(rows, 2, figsize=(12, 4 * rows), layout="constrained")
    for unused in axes.flat[len(panels) :]:
        unused.set_axis_off()
    for panel, (event, name, title) in zip(axes.flat, panels, strict=False):
        panel.set(title=title, xlabel="step")
        for run, events in runs.items():
            by_part = curves(events, event, name)
            for part, (steps, values) in by_part.items():
                label = _label(run if len(runs) > 1 else "", part)
                panel.plot(steps, values, label=label, linewidth=1 if part else 1.8)
            if event == TASKS or len(by_part) > 1 or (by_part and len(runs) > 1):
                panel.legend(fontsize="small")
        panel.grid(alpha=0.3)
    with disk_errors_explained(output):
        try:
            figure.savefig(output, dpi=120)
        except ValueError as error:  # the ending is not supported
            raise UserError(f"--output {output}: {error}. Give a .png, .svg or .pdf.") from error
    pyplot.close(figure)


def _panels(runs: Iterable[Sequence[dict[str, Any]]]) -> list[tuple[str, str, str]]:
    """Return the event, figure and title of each panel."""
    logs = list(runs)
    drawn = (panel for panel in _OF_TASKS if any(curves(log, *panel[:2]) for log in logs))
    return [*_PANELS, *drawn]


def _label(*names: str) -> str:
    # matplotlib reads text between two dollars as mathematics.
    return visible_line(" ".join(filter(None, names)) or "all").replace("$", r"\$")


@dataclass(frozen=True, kw_only=True)
class Plot(Command):
    """Plot the curves of training runs."""

    STOPPED = "no picture was written"

    runs: tuple[Path, ...] = option(MISSING, flag=WORD, nargs="+", type=local_path, metavar="RUN")
    """Folders of training runs (--save)."""
    output: Path | None = option(None, type=local_path, metavar="FILE")
    """Picture to write: .png, .svg or .pdf. Default: RUN/curves.png."""

    def run(self) -> None:
        """Draw the curves and print the name of the file."""
        output = self.output or self.runs[0] / "curves.png"
        draw(self.runs, output)
        print_line(str(output))


if __name__ == "__main__":
    sys.exit(run_module("trainer.plot"))
