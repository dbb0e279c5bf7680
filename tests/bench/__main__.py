"""Measurements for people: `make bench`, `make bench ARGS="--only workers --megabytes 2000"`.

Input is made under build/bench and kept for the next time. Nothing is asserted: figures depend on
the machine, so each comes with its command, machine and date.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from pipelines.execute.runner import silence_beam
from tests.bench import blanks, dedup, generating, loaders, rivals, rules, workers
from tests.bench.table import machine
from tests.evidence_page import record

QUESTIONS: Mapping[str, tuple[str, Callable[[argparse.Namespace], str]]] = {
    "rivals": (
        "The pipeline compared with datatrove's",
        lambda asked: rivals.measure(asked.python),
    ),
    "rules": (
        "Rules, compared with datatrove's own filters",
        lambda asked: rules.measure(asked.lid_model),
    ),
    "workers": (
        "Memory and speed of python -m pipelines.wudao",
        lambda asked: workers.measure(asked.megabytes),
    ),
    "dedup": ("Dedup of generated documents", lambda asked: dedup.measure(asked.documents)),
    "append": (
        "Dedup of 100,000 new documents against generated earlier ones",
        lambda asked: dedup.measure_append(asked.existing or dedup.EXISTING),
    ),
    "dedup-found": (
        "Planted near-duplicates found, compared with datatrove",
        lambda asked: dedup.compare(asked.python),
    ),
    "loaders": (
        "Causal windows per second, compared with other loaders",
        lambda asked: loaders.measure(asked.python),
    ),
    "blanks": ("GLM windows to rows with blanks", lambda _: blanks.measure()),
    "generate": ("Tokens written a second", lambda _: generating.measure()),
}
"""Title of each table by its name, and the function that returns the table."""


def main() -> None:
    """Print a table for each question asked."""
    asked = _arguments()
    silence_beam()
    for name in asked.only or QUESTIONS:
        title, measure = QUESTIONS[name]
        words = [word for word in sys.argv[1:] if word != "--write"]
        command = shlex.join(["python", "-m", "tests.bench", *words])
        print(f"\n{title}\n{command}: {name}\n{machine()}", flush=True)
        table = measure(asked)
        print(table, flush=True)
        if asked.write:
            record(title, f"{command}: {name}\n{machine()}\n{table}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        choices=tuple(QUESTIONS),
        help="one question; repeat it for several. Default: all",
    )
    parser.add_argument(
        "--megabytes",
        type=int,
        default=int(os.environ.get("BENCH_MB", "200")),
        help="size of the input of workers. Default: BENCH_MB, else 200",
    )
    parser.add_argument(
        "--documents",
        type=int,
        default=1_000_000,
        help="documents of the dedup question. Default: 1,000,000",
    )
    parser.add_argument(
        "--existing",
        type=int,
        action="append",
        help="earlier documents of the append question, 368 bytes of disk each; repeat it. "
        "Default: 0, 1,000,000 and 10,000,000",
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
    parser.add_argument(
        "--write", action="store_true", help="put the figures on the page docs/evidence.md"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
