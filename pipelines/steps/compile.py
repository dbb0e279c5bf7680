"""Compiles all kernels while an image is built, so that containers start with compiled kernels.

    python -m pipelines.steps.compile

On other machines the first run that needs a kernel compiles it, for all processes of the machine.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pipelines.corpus.options import Options
from pipelines.corpus.spec import SAMPLE
from pipelines.quality.catalog import PROFILES
from pipelines.steps.step_pipeline import load_steps
from shards.commands.command import Command
from shards.commands.output import print_line
from shards.console import run_module


@dataclass(frozen=True, kw_only=True)
class Compile(Command):
    """Compile all kernels, for containers that start from an image."""

    STOPPED = "the kernels compiled so far are kept"

    def run(self) -> None:
        """Compile the missing kernels and print how long it took."""
        print_line(compile_all())


def compile_all() -> str:
    """Compile the kernels that this machine lacks, and return a line with the time it took."""
    started = time.process_time()
    with TemporaryDirectory() as folder:
        benchmark = Path(folder) / "benchmark.txt"
        benchmark.write_text(" ".join(map(str, range(100))))
        for number, options in enumerate(_runs(benchmark)):
            load_steps(options, run=str(number)).prepare()
    return f"kernels are ready after {time.process_time() - started:.0f} CPU seconds"


def _runs(benchmark: Path) -> Iterator[Options]:
    """Yield the options of runs that together need every kernel."""
    for language, dedup in (("en", "exact"), ("zh", "minhash")):
        for profile in PROFILES:
            if profile.supports(language):
                yield Options(
                    output=Path(),
                    tokenizer=f"sentencepiece:{SAMPLE / 'sample.model'}",
                    languages=(language,),
                    dedup=dedup,
                    decontaminate=(str(benchmark),),
                    quality=(f"{language}={profile.name}",),
                )


if __name__ == "__main__":
    sys.exit(run_module("pipelines.steps.compile"))
