"""How much memory a run takes: the real command, its whole process tree sampled while it works."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.bench import inputs
from tests.bench.clock import children_cpu
from tests.bench.table import render

SAMPLES_PER_SECOND = 5
WORKERS = (1, 2)


@dataclass
class Marks:
    """High-water marks in bytes; a tree is the driver with all its children."""

    tree_rss: int = 0
    """Pages that several processes share count once for each of them."""
    tree_pss: int = 0
    """Pages that several processes share count once."""
    process_pss: int = 0
    """Of the largest process."""
    seconds: dict[str, float] = field(default_factory=dict)
    """When, from the start of the run, each mark was reached."""

    def raise_to(self, *, after: float, **values: int) -> None:
        """Take the values that are higher."""
        for name, value in values.items():
            if value > getattr(self, name):
                setattr(self, name, value)
                self.seconds[name] = after


def measure(megabytes: int) -> str:
    """Return the table of high-water marks, rates and seconds per phase for so much input."""
    folder = inputs.recombined(megabytes)
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    rows = [_row(folder, workers, megabytes=size) for workers in WORKERS]
    return render(
        (
            "workers",
            "tree RSS MB",
            "tree PSS MB",
            "largest process PSS MB",
            "MB/CPU s",
            "MB/s",
            "seconds",
            "of these",
        ),
        rows,
    )


def _row(folder: Path, workers: int, *, megabytes: float) -> list[str]:
    output = inputs.FOLDER / f"output-{workers}"
    shutil.rmtree(output, ignore_errors=True)
    started, spent = time.monotonic(), children_cpu()
    with _run(folder, output, workers=workers) as process:
        marks = _watch(process)
    seconds, spent = time.monotonic() - started, children_cpu() - spent
    phases = json.loads((output / "report.json").read_bytes())["seconds"]
    shutil.rmtree(output)
    return [
        str(workers),
        *(
            f"{getattr(marks, name) / 1e6:,.0f} (at {marks.seconds[name]:.0f} s)"
            for name in ("tree_rss", "tree_pss", "process_pss")
        ),
        f"{megabytes / spent:.1f}",
        f"{megabytes / seconds:.1f}",
        f"{seconds:.1f}",
        ", ".join(f"{name} {value:g}" for name, value in phases.items()),
    ]


@contextmanager
def _run(folder: Path, output: Path, *, workers: int) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "pipelines.wudao", "--input", str(folder)]
    command += ["--tokenizer", inputs.tokenizer(), "--output", str(output)]
    command += ["--workers", str(workers)]
    print("$ python", *command[1:], file=sys.stderr)
    process = subprocess.Popen(command, cwd=inputs.ROOT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _watch(process: "subprocess.Popen[bytes]") -> Marks:
    """Return the marks of a process tree when its root has ended.

    Raises:
        subprocess.CalledProcessError: It ended with an error.
    """
    marks = Marks()
    started = time.monotonic()
    root = psutil.Process(process.pid)
    while process.poll() is None:
        found = _sizes(root)
        marks.raise_to(
            after=time.monotonic() - started,
            tree_rss=sum(rss for rss, _ in found),
            tree_pss=sum(pss for _, pss in found),
            process_pss=max((pss for _, pss in found), default=0),
        )
        time.sleep(1 / SAMPLES_PER_SECOND)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return marks


def _sizes(root: psutil.Process) -> list[tuple[int, int]]:
    """Return RSS and PSS of the processes of a tree that are alive."""
    found = []
    with suppress(psutil.NoSuchProcess):
        for process in [root, *root.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                memory = process.memory_full_info()
                found.append((memory.rss, memory.pss))
    return found
