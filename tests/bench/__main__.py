"""Benchmarks: `make bench`, `make bench ARGS="--only workers --megabytes 2000"`.

Inputs are written to build/bench, and reused. Nothing is asserted, because figures depend on the
machine; each table has its command, machine and date.
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

BENCHMARKS: Mapping[str, tuple[str, Callable[[argparse.Namespace], str]]] = {
    "rivals": (
        "The pipeline compared with datatrove's",
        lambda arguments: rivals.measure(arguments.python),
    ),
    "rules": (
        "Rules, compared with datatrove's own filters",
        lambda arguments: rules.measure(arguments.lid_model),
    ),
    "workers": (
        "Memory and speed of python -m pipelines.wudao",
        lambda arguments: workers.measure(arguments.megabytes),
    ),
    "dedup": ("Dedup of generated documents", lambda arguments: dedup.measure(arguments.documents)),
    "append": (
        "Dedup of 100,000 new documents against generated earlier ones",
        lambda arguments: dedup.measure_append(arguments.existing or dedup.EXISTING),
    ),
    "dedup-found": (
        "Planted near-duplicates found, compared with datatrove",
        lambda arguments: dedup.compare(arguments.python),
    ),
    "loaders": (
        "Causal windows per second, compared with other loaders",
        lambda arguments: loaders.measure(arguments.python),
    ),
    "blanks": ("GLM windows to rows with blanks", lambda _: blanks.measure()),
    "generate": ("Tokens written a second", lambda _: generating.measure()),
}
"""By name of the benchmark: the title of the table, and the function that returns the table."""


def main() -> None:
    """Print the tables of all benchmarks, or of those that --only names."""
    arguments = _arguments()
    silence_beam()
    for name in arguments.only or BENCHMARKS:
        title, measure = BENCHMARKS[name]
        words = [word for word in sys.argv[1:] if word != "--write"]
        command = shlex.join(["python", "-m", "tests.bench", *words])
        print(f"\n{title}\n{command}: {name}\n{machine()}", flush=True)
        table = measure(arguments)
        print(table, flush=True)
        if arguments.write:
            record(title, f"{command}: {name}\n{machine()}\n{table}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        choices=tuple(BENCHMARKS),
        help="one benchmark; may be repeated. Default: all",
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
        help="number of documents of dedup. Default: 1,000,000",
    )
    parser.add_argument(
        "--existing",
        type=int,
        action="append",
        help="number of earlier documents of append, with 368 bytes of disk each; may be repeated. "
        "Default: 0, 1,000,000 and 10,000,000",
    )
    parser.add_argument(
        "--lid-model",
        type=Path,
        help="the language model of rules, such as lid.176.bin. Default: the installed one",
    )
    parser.add_argument(
        "--python",
        default=sys.executable,
        help="an interpreter with datatrove and other loaders. Default: this one",
    )
    parser.add_argument("--write", action="store_true", help="write the tables to docs/evidence.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
