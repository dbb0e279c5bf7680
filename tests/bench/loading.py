"""How fast batches come, beside other loaders; how fast a run starts and goes on."""

import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench import glm_start, token_data
from tests.bench.inputs import ROOT
from tests.bench.loaders.__main__ import BATCH_SIZE, LENGTH, MISSING
from tests.bench.table import render

LIMIT = "limit"
LOADERS = (
    LIMIT,
    "numpy_stack",
    "corpusmill_plain",
    "corpusmill",
    "litdata",
    "datatrove",
    "megatron",
    "olmo",
)
"""Modules in tests/bench/loaders; what they are stands there."""
NUM_TOKENS = 200_000_000
ROUNDS = 3
BILLIONS = (1, 10, 100)
FRACTIONS = (0.0, 0.01, 0.5, 0.99)

Figures = Mapping[str, float]


def measure(python: str) -> str:
    """Return the table of loaders, all run by this interpreter; one it lacks is named below."""
    dataset = token_data.one_shard(NUM_TOKENS)
    command = (python, "-m", "tests.bench.loaders")
    # The first run makes what some loaders write before they read, and is not counted.
    found = {name: _run(*command, name, str(dataset)) for name in LOADERS}
    runs: dict[str, list[Figures]] = {
        name: [] for name in LOADERS if not isinstance(found[name], str)
    }
    for _ in range(ROUNDS):
        for name in list(runs):
            figures = _run(*command, name, str(dataset))
            if isinstance(figures, str):
                found[name] = figures
                del runs[name]
            else:
                runs[name].append(figures)
    lines = [f"{name} is skipped: {found[name]}" for name in LOADERS if name not in runs]
    head = ("loader", "M tokens/s", "range", "of limit", "M tokens/CPU s", "p99 ms", "first ms")
    limit = _median(runs[LIMIT], "per_second")
    rows = [_row(name, figures, limit=limit) for name, figures in runs.items()]
    what = f"{ROUNDS} rounds of 4 s, {BATCH_SIZE} windows of {LENGTH} of {NUM_TOKENS:,} tokens"
    return "\n".join([f"{what}, one process", render(head, rows), *lines])


def _row(name: str, runs: Sequence[Figures], *, limit: float) -> list[str]:
    rates = [run["per_second"] / 1e6 for run in runs]
    return [
        name,
        f"{statistics.median(rates):,.0f}",
        f"{min(rates):,.0f}-{max(rates):,.0f}",
        f"{_median(runs, 'per_second') / limit:.0%}",
        f"{_median(runs, 'per_cpu_second') / 1e6:,.0f}",
        f"{_median(runs, 'p99_ms'):.2f}",
        f"{_median(runs, 'first_ms'):,.0f}",
    ]


def _median(runs: Sequence[Figures], name: str) -> float:
    return statistics.median(run[name] for run in runs)


def measure_start() -> str:
    """Return the table of a GLM run's start on datasets of three sizes."""
    rows = []
    for billions in BILLIONS:
        runs = _starts(token_data.sparse(billions * 1_000_000_000), fraction=0.0)
        rows.append([f"{billions} B", *_start_cells(runs)])
    return f"{_START}\n{render(('tokens', *_START_HEAD), rows)}"


def measure_resume() -> str:
    """Return the table of a GLM run's start at several places of an epoch."""
    dataset = token_data.sparse(10_000_000_000)
    rows = [
        [f"{fraction:.0%}", *_start_cells(_starts(dataset, fraction=fraction))]
        for fraction in FRACTIONS
    ]
    return f"10 B tokens; {_START}\n{render(('resumed at', *_START_HEAD), rows)}"


_START = (
    f"{glm_start.BATCH_SIZE} GLM windows of {glm_start.POSITIONS}, {ROUNDS} fresh processes, "
    "from Dataset.open on; sparse files in the page cache"
)
_START_HEAD = (
    "first batch ms",
    f"{glm_start.NUM_BATCHES} batches ms",
    "private MB",
    "mapped files MB",
)


def _starts(dataset: Path, *, fraction: float) -> list[Figures]:
    command = (sys.executable, "-m", "tests.bench.glm_start", str(dataset), str(fraction))
    runs = [_run(*command) for _ in range(ROUNDS + 1)]
    return [run for run in runs[1:] if not isinstance(run, str)]


def _start_cells(runs: Sequence[Figures]) -> list[str]:
    return [
        f"{1000 * _median(runs, 'first'):,.0f}",
        f"{1000 * _median(runs, 'all'):,.0f}",
        f"{_median(runs, 'Anon'):,.0f}",
        f"{_median(runs, 'File'):,.0f}",
    ]


def _run(*command: str) -> Figures | str:
    """Return the figures that a process prints last, or why there are none."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode == MISSING:
        return f"no module {lines[-1]}"
    if done.returncode:
        return f"it failed: {done.stderr.strip()[-200:]}"
    figures: Figures = json.loads(lines[-1])
    return figures
