"""Runs of the commands on engines, started as a user would, and the resources they took."""

import hashlib
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from pipelines.corpus.recipe import SAMPLE
from shards.manifest import read_manifest
from shards.storage.files import canonical
from tests.engines.processes import Process, started
from tests.pipelines.runs import content

ROOT = Path(__file__).parents[2]
COMMON = (
    "--tokenizer", f"sentencepiece:{SAMPLE / 'sample.model'}", "--languages", "all",
    "--language-threshold", "0", "--dedup", "minhash",
)  # fmt: skip
_WORKER = re.compile("SdkHarness|spawn_main")


@dataclass
class Usage:
    """The resources that descendants of this process took during a run."""

    memory: int = 0
    """Largest sum of resident bytes, without this process."""
    cpu: dict[int, float] = field(default_factory=dict)
    """CPU seconds of the processes that run tasks beside the driver, by pid."""

    def busiest(self) -> list[float]:
        """CPU seconds of the processes that run tasks, largest first."""
        return sorted(self.cpu.values(), reverse=True)

    def measure(self) -> None:
        """Update the figures."""
        memory = 0
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                memory += process.memory_info().rss
                if _WORKER.search(" ".join(process.cmdline())):
                    times = process.cpu_times()
                    self.cpu[process.pid] = times.user + times.system
        self.memory = max(self.memory, memory)


@dataclass
class Run:
    """A run that has started."""

    process: Process
    output: Path
    log: Path
    usage: Usage = field(default_factory=Usage)
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0

    def finish(self, *, seconds: float = 600) -> str:
        """Wait for its end, check that it succeeded, and return its output."""
        code = self.process.wait(timeout=seconds)
        self.seconds = time.monotonic() - self.began
        output = self.log.read_text(errors="replace")
        assert code == 0, output
        assert "Traceback" not in output, output
        return output

    def report(self) -> Mapping[str, Any]:
        """Its report.json."""
        report: Mapping[str, Any] = json.loads((self.output / "report.json").read_bytes())
        return report

    def sha256(self) -> str:
        """One hash of the names and hashes of all files of the dataset."""
        return hashlib.sha256(canonical(content(self.output))).hexdigest()


@contextmanager
def begun(module: str, flags: Sequence[object], output: Path) -> Iterator[Run]:
    """Yield a run; what is left of it after the block is ended."""
    command = [sys.executable, "-m", module, *COMMON, "--output", output, *flags]
    log = output.with_suffix(".log")
    log.parent.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with started(command, log=log, env=env, cwd=ROOT) as process:
        run = Run(process, output, log)
        stop = threading.Event()
        watch = threading.Thread(target=_watch, args=(run.usage, stop), daemon=True)
        watch.start()
        try:
            yield run
        finally:
            stop.set()
            watch.join()


def _watch(usage: Usage, stop: threading.Event) -> None:
    while not stop.wait(0.3):
        usage.measure()


def finished(module: str, flags: Sequence[object], output: Path) -> Run:
    """A run that has succeeded."""
    with begun(module, flags, output) as run:
        run.finish()
    return run


def check_same(run: Run, reference: Run) -> None:
    """Check that two runs made the same dataset, file by file, with the same report."""
    ours, theirs = content(run.output), content(reference.output)
    assert ours == theirs
    assert len(ours) > 5
    assert read_manifest(run.output).identity == read_manifest(reference.output).identity
    report, expected = run.report(), reference.report()
    assert report["tasks"] == expected["tasks"]
    assert report["seconds"].keys() == expected["seconds"].keys() >= {"map", "dedup", "merge"}
    assert report["accounting"] == expected["accounting"]
    assert not (run.output / ".work").exists()
