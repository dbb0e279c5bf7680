"""What more workers bring: on this machine, and on a cluster that loses machines.

Cores that share a memory and a clock do less together than alone, so beside n workers of one run
stand n runs of one worker at the same time, each on its share of the files: what this machine can
do. The start of a run, measured on a single small file, is subtracted from both.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

from tests.bench import inputs
from tests.bench.recipes import FINEWEB2
from tests.bench.table import render
from tests.engines import flink
from tests.engines.java import why_missing

SPLITS = 1000


def measure(megabytes: int) -> str:
    """Return two tables: workers of this machine; the map of SPLITS splits on a Flink cluster."""
    folder = inputs.recombined(megabytes)
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    return f"{_workers(folder, size)}\n\n{_cluster(folder, size)}"


def _workers(folder: Path, megabytes: float) -> str:
    files = sorted(folder.iterdir())
    small = sorted(inputs.recombined(1).iterdir())
    alone = 0.0
    rows = []
    for workers in range(1, len(os.sched_getaffinity(0)) + 1):
        start, seconds = _seconds([_command(small, workers)]), 0.0
        seconds = _seconds([_command(files, workers)]) - start
        shares = [files[index::workers] for index in range(workers)]
        starts = _seconds([_command(small, 1, str(index)) for index in range(workers)])
        commands = [_command(share, 1, str(index)) for index, share in enumerate(shares)]
        apart = _seconds(commands) - starts
        alone = alone or seconds
        rows.append(
            [
                str(workers),
                *(f"{value:.1f}" for value in (start, seconds, megabytes / seconds)),
                f"{alone / seconds / workers:.2f}",
                f"{apart:.1f}",
                f"{apart / seconds:.2f}",
            ]
        )
    head = (
        "workers", "start, s", "then, s", "MB/s", "of so many times one worker", "separate runs, s",
        "of separate runs",
    )  # fmt: skip
    return render(head, rows)


def _command(files: Sequence[Path], workers: int, name: str = "") -> list[str]:
    output = inputs.FOLDER / f"output-scaling{name}"
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-m", "pipelines.wudao", "--output", str(output)]
    command += ["--input", str(_folder(files, name))] if files else []
    command += ["--tokenizer", inputs.tokenizer(), "--quality", f"zh={FINEWEB2}"]
    return [*command, "--workers", str(workers)]


def _folder(files: Sequence[Path], name: str) -> Path:
    """Return a folder of links to files."""
    folder = inputs.FOLDER / f"input-scaling{name}-{len(files)}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in files:
        (folder / file.name).symlink_to(file)
    return folder


def _seconds(commands: Sequence[Sequence[str]]) -> float:
    """Return the seconds until all commands, begun at once, have ended."""
    started = time.monotonic()
    running = [
        subprocess.Popen(command, cwd=inputs.ROOT, stdout=subprocess.DEVNULL)
        for command in commands
    ]
    if any(process.wait() for process in running):
        raise RuntimeError(f"one of {commands} failed")
    return time.monotonic() - started


def _cluster(folder: Path, megabytes: float) -> str:
    if reason := why_missing(flink.JARS):
        return f"cluster skipped: {reason}"
    cores = len(os.sched_getaffinity(0))
    size = sum(path.stat().st_size for path in folder.iterdir())
    cut = ["--split-bytes", str(size // SPLITS), "--input", str(folder)]
    rows = []
    for name, losses in (("this machine", -1), ("cluster", 0), ("cluster with losses", 2)):
        output = inputs.FOLDER / "output-scaling"
        shutil.rmtree(output, ignore_errors=True)
        scratch = inputs.FOLDER / "flink"
        shutil.rmtree(scratch, ignore_errors=True)
        command = [*_command([], cores), *cut]
        if losses < 0:
            _seconds([command])
        else:
            with flink.session_cluster(scratch, managers=cores + 1, slots=1) as cluster:
                command = [*_command([], 0)[:-2], *cut, *cluster.flags, f"--parallelism={cores}"]
                loss = Thread(target=_lose, args=(cluster, output, losses), daemon=True)
                loss.start()
                _seconds([command])
                loss.join()
        report = json.loads((output / "report.json").read_bytes())
        seconds = report["seconds"]["map"]
        rows.append([name, f"{max(losses, 0)}", f"{seconds:.1f}", f"{megabytes / seconds:.1f}"])
    first = float(rows[0][2])
    rows = [[*row, f"{first / float(row[2]):.2f}"] for row in rows]
    head = (f"map of {SPLITS:,} splits, {cores} at a time", "losses", "s", "MB/s", "of the first")
    return render(head, rows)


def _lose(cluster: flink.Cluster, output: Path, losses: int) -> None:
    """Kill -9 the busiest Python worker after a third of the splits, a machine after two thirds.

    The cluster has one machine more than work at a time, so that what is lost is time, not
    capacity.
    """
    if not losses:
        return
    for share in (1 / 3, 2 / 3):
        while len([*(output / ".work" / "map").glob("[!.]*.json")]) < share * SPLITS:
            time.sleep(0.2)
        if share < 1 / 2:
            workers = [worker for manager in cluster.managers for worker in manager.workers()]
            max(workers, key=lambda worker: sum(worker.cpu_times()[:2])).kill()
        elif (manager := cluster.carrier("Map splits")) is not None:
            manager.kill()
