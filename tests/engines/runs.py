"""Runs on engines, started as a user would start them."""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.corpus.spec import SAMPLE
from shards.manifest import read_manifest
from tests.engines.processes import Process, started
from tests.pipelines.runs import content

ROOT = Path(__file__).parents[2]
COMMON = (
    "--tokenizer", f"sentencepiece:{SAMPLE / 'sample.model'}", "--languages", "all",
    "--language-threshold", "0", "--dedup", "minhash",
)  # fmt: skip


@dataclass
class Run:
    """A run that has started."""

    process: Process
    output: Path
    log: Path

    def finish(self, *, seconds: float = 600) -> str:
        """Wait for the end of the run, check that it succeeded, and return the output."""
        code = self.process.wait(timeout=seconds)
        output = self.log.read_text(errors="replace")
        assert code == 0, output
        assert "Traceback" not in output, output
        return output

    def report(self) -> Mapping[str, Any]:
        """Return the content of report.json."""
        report: Mapping[str, Any] = json.loads((self.output / "report.json").read_bytes())
        return report


@contextmanager
def started_run(module: str, flags: Sequence[object], output: Path) -> Iterator[Run]:
    """Start a run, and yield it; the end of the block ends any processes that remain."""
    command = [sys.executable, "-m", module, *COMMON, "--output", output, *flags]
    log = output.with_suffix(".log")
    log.parent.mkdir(parents=True, exist_ok=True)
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    with started(command, log=log, env=env, cwd=ROOT) as process:
        yield Run(process, output, log)


def completed_run(module: str, flags: Sequence[object], output: Path) -> Run:
    """Complete a run, check that it succeeded, and return it."""
    with started_run(module, flags, output) as run:
        run.finish()
    return run


def check_same(run: Run, reference: Run) -> None:
    """Check that two runs built the same files and the same report."""
    ours, theirs = content(run.output), content(reference.output)
    assert ours == theirs
    assert len(ours) > 5
    assert read_manifest(run.output).identity == read_manifest(reference.output).identity
    report, expected = run.report(), reference.report()
    assert report["stages"] == expected["stages"]
    assert report["seconds"].keys() == expected["seconds"].keys() >= {"map", "dedup", "merge"}
    assert report["accounting"] == expected["accounting"]
    assert not (run.output / ".work").exists()
