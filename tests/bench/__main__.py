"""Measurements for people: `make bench`, `make bench ARGS="--only memory --megabytes 2000"`.

Input is made under build/bench and kept for the next time. Nothing is asserted: figures depend on
the machine, so each comes with its command, machine and date.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from pipelines.engine.runner import silence_beam
from tests.bench import (
    append,
    blanks,
    dedup,
    generating,
    loading,
    memory,
    planning,
    rivals,
    rules,
    scaling,
    stages,
    watch,
)
from tests.bench.table import machine

Question = Callable[[], str]


def main() -> None:
    """Print a table for each question asked."""
    asked = _arguments()
    questions: Mapping[str, tuple[str, Question]] = {
        "stages": (
            "The chain against its stages, the engines that a plain run takes",
            stages.measure,
        ),
        "rules": (
            "Rules: compiled, plain, and datatrove's own filters",
            partial(rules.measure, asked.lid_model),
        ),
        "rivals": (
            "The pipeline beside datatrove's",
            partial(rivals.measure, asked.python),
        ),
        "memory": (
            "Memory and speed of python -m pipelines.wudao",
            partial(memory.measure, asked.megabytes),
        ),
        "scaling": (
            "What more workers bring",
            partial(scaling.measure, asked.megabytes),
        ),
        "plan": (
            "--plan beside the run that it foretells",
            partial(planning.measure, asked.megabytes),
        ),
        "dedup": (
            "Dedup of generated documents",
            partial(dedup.measure, asked.documents),
        ),
        "append": (
            "Dedup of 100,000 new documents against generated earlier ones",
            partial(append.measure, asked.existing or append.EXISTING),
        ),
        "dedup-found": (
            "Planted near-duplicates found, beside datatrove",
            partial(dedup.compare, asked.python),
        ),
        "loaders": (
            "Causal windows per second, beside other loaders",
            partial(loading.measure, asked.python),
        ),
        "start": ("The start of a GLM run", loading.measure_start),
        "resume": ("A GLM run goes on", loading.measure_resume),
        "blanks": ("GLM windows to rows with blanks", blanks.measure),
        "generate": ("512 tokens with and without a cache", generating.measure),
        "watch": (
            "A watch, with two kills",
            partial(watch.measure, asked.minutes),
        ),
    }
    silence_beam()
    for name in asked.only or questions:
        title, measure = questions[name]
        command = shlex.join(["python", "-m", "tests.bench", "--only", name])
        print(f"\n{title}\n{command} --megabytes {asked.megabytes}\n{machine()}")
        sys.stdout.flush()
        print(measure(), flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        choices=(
            *("stages", "rules", "rivals", "memory", "scaling", "plan", "dedup", "append"),
            *("dedup-found", "loaders", "start", "resume", "blanks", "generate", "watch"),
        ),
        help="one question; repeat it for several. Default: all",
    )
    parser.add_argument(
        "--megabytes",
        type=int,
        default=int(os.environ.get("BENCH_MB", "200")),
        help="size of the input of memory, scaling and plan. Default: BENCH_MB, else 200",
    )
    parser.add_argument(
        "--documents",
        type=int,
        default=1_000_000,
        help="documents of the dedup questions. Default: 1,000,000",
    )
    parser.add_argument(
        "--existing",
        type=int,
        action="append",
        help="earlier documents of the append question, 368 bytes of disk each; repeat it. "
        "Default: 0, 1,000,000 and 10,000,000",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=3.0,
        help="how long the watch lasts. Default: 3",
    )
    parser.add_argument(
        "--lid-model",
        type=Path,
        help="the model of languages in rules, such as lid.176.bin. Default: the installed one",
    )
    parser.add_argument(
        "--python",
        default=sys.executable,
        help="an interpreter with datatrove and other loaders, to compare with. Default: this",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
