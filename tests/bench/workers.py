"""Measures memory and speed of python -m pipelines.wudao, and the gain from more workers.

Cores share memory and clock, so each does less when all work. One run of n workers is therefore
compared with n simultaneous runs of one worker, each on a part of the files, which is the maximum
for the machine. The start of a run, measured on one megabyte, is subtracted from both.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench import inputs
from tests.bench.cost import Command, run_measured
from tests.bench.table import render


def measure(megabytes: int) -> str:
    """Return the table for one worker, for one worker per core, and for one run per core."""
    small, large = (sorted(inputs.recombined(size).iterdir()) for size in (1, megabytes))
    size = sum(path.stat().st_size for path in large) / 1e6
    cores = len(os.sched_getaffinity(0))
    rows: list[list[str]] = []
    first = 0.0
    for name, workers, runs in (
        ("1 worker", 1, 1),
        (f"{cores} workers", cores, 1),
        (f"{cores} runs", 1, cores),
    ):
        start, cost = (
            run_measured(*(_command(files[run::runs], workers, f"{run}") for run in range(runs)))
            for files in (small, large)
        )
        seconds = cost.seconds - start.seconds
        first = first or seconds
        figures = (start.seconds, seconds, size / seconds, size / cost.cpu, first / seconds)
        memory = f"{cost.rss / 1e6:,.0f}"
        rows.append([name, *(f"{figure:.2f}" for figure in figures), memory])
    head = ("", "start, s", "then, s", "MB/s then", "MB/CPU s", "times one worker", "RSS MB")
    return render(head, rows)


def _command(files: Sequence[Path], workers: int, name: str) -> Command:
    given = inputs.fresh_path(f"input-workers{name}")
    given.mkdir(parents=True)
    for file in files:
        (given / file.name).symlink_to(file)
    output = inputs.fresh_path(f"output-workers{name}")
    return [
        *(sys.executable, "-m", "pipelines.wudao", "--input", given, "--output", output),
        *("--tokenizer", inputs.tokenizer(), "--workers", workers),
    ]
