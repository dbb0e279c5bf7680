"""Mutates the files of a dataset and has them read: `python -m tests.mutations --mutations 10000`.

No mutation may end the interpreter, take its memory or its time, or show a traceback. Cases are
numbered; each follows from the seed and its number, so that one that fails can be run alone:
`--seed 1 --only 4711`.
"""

import argparse
import itertools
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from tests.mutations.cases import READINGS, Cases
from tests.mutations.sandbox import FINE, Outcome
from tests.mutations.victim import make_victim

_AT_ONCE = 300
"""Cases that a process is given at a time."""

_SHOWN = 2
"""Cases of each fault that are shown in full."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases, print the faults, and return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--mutations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="run this case alone")
    parser.add_argument("--kinds", nargs="*", default=(), help="only files of these kinds")
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args(arguments)
    numbers = range(asked.mutations * READINGS) if asked.only is None else [asked.only]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "victim").mkdir()
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            victim = make_victim(Path(folder) / "victim")
        cases = Cases(victim, seed=asked.seed, folder=Path(folder) / "runs", kinds=asked.kinds)
        outcomes = _outcomes(cases, numbers, processes=asked.processes)
        faults = _print_faults(cases, outcomes, verbose=asked.only is not None)
    print(f"{len(numbers):,} readings in {time.perf_counter() - start:,.0f} s")
    for what, number in faults.most_common():
        print(f"{number:>9,}  {what}")
    return 0 if faults.keys() <= {f"{FINE}, exit code {code}" for code in range(3)} else 1


def _outcomes(cases: Cases, numbers: Sequence[int], *, processes: int) -> Iterator[Outcome]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        starts = range(0, len(numbers), _AT_ONCE)
        groups = [numbers[start : start + _AT_ONCE] for start in starts]
        yield from itertools.chain.from_iterable(pool.map(cases.outcomes, groups))


def _print_faults(cases: Cases, outcomes: Iterable[Outcome], *, verbose: bool) -> Counter[str]:
    """Print what failed as it comes, and return how often what happened."""
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        fine = outcome.what == FINE
        what = f"{FINE}, exit code {outcome.code}" if fine else outcome.what
        counts[what] += 1
        if not fine or verbose:
            print(f"{outcome.case}: {what}: {cases.case(outcome.case)}", flush=True)
        if verbose or (not fine and counts[what] <= _SHOWN):
            print(outcome.said, flush=True)
    return counts


if __name__ == "__main__":
    sys.exit(main())
