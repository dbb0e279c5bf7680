"""Mutation testing: puts one-line faults into the product, and prints those that no test notices.

A fault changes or deletes a comparison, constant, argument, `and`, return or call. A seed draws
faults from the whole code, or from the folders that are named. Each is put into a copy of the
repository, where the tests that reach its function run, including the rows of golden commands and
refusals. `make mutants` keeps the results in `build/mutants`, and continues after it was stopped.
`unseen.py` lists the faults that no test can see, with the reasons.
"""

import argparse
import hashlib
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.mutants.choice import Choice
from tests.mutants.copies import PACKAGES, ROOT, product_files
from tests.mutants.faults import Fault, faults_of
from tests.mutants.reach import current_reach
from tests.mutants.unseen import UNSEEN
from tests.mutants.worker import key, run_faults

_PATIENCE = 4.0
"""The factor by which the tests against faults that survived before get more time."""


def main() -> int:
    """Try the faults of a sample that have no result yet, and print all results."""
    args = _parse()
    folder = ROOT / "build" / "mutants"
    folder.mkdir(parents=True, exist_ok=True)
    reach = current_reach(folder, processes=args.processes, below=args.tests)
    faults = _draw(args.paths or PACKAGES, size=args.sample, seed=args.seed)
    kept = folder / "results.jsonl"
    results = {} if args.again else _kept(kept)
    if args.survivors:
        results = {key: value for key, value in results.items() if value["caught_by"]}
    waiting = [fault for fault in faults if key(fault) not in results | UNSEEN]
    print(f"{len(faults)} faults of seed {args.seed}, {len(waiting)} to run", flush=True)
    patience = _PATIENCE if args.survivors else 1.0
    choice = Choice(ROOT, reach, below=tuple(args.tests), patience=patience)
    with kept.open("a") as file:
        for number, result in enumerate(run_faults(folder, choice, waiting, args.processes), 1):
            results[result["key"]] = result
            file.write(json.dumps(result) + "\n")
            file.flush()
            verdict = f"caught by {result['caught_by']}" if result["caught_by"] else "SURVIVED"
            print(f"{number}/{len(waiting)} {result['seconds']:5.1f} s  {result['fault']}")
            print(f"    {verdict}, test {result['ran']} of {result['chosen']}", flush=True)
    _print_table(faults, results)
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("paths", nargs="*", help="folders or files of the product; none: all")
    parser.add_argument("--sample", type=int, default=200, help="number of faults")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw")
    parser.add_argument("--tests", nargs="+", default=["tests/"], help="only tests below these")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--again", action="store_true", help="also run faults that have a result")
    parser.add_argument(
        "--survivors",
        action="store_true",
        help=f"repeat the faults that survived, with {_PATIENCE:g} times as much time for tests",
    )
    return parser.parse_args()


def _draw(paths: Sequence[str], *, size: int, seed: int) -> list[Fault]:
    """Return the faults of a sample, in the order in which they were drawn.

    The draw uses a hash of each fault, so a fault stays in the sample when the code of a different
    function changes.
    """
    wanted = tuple(str(path).rstrip("/") for path in paths)
    files = [
        path for path in product_files(ROOT) if _is_below(path.relative_to(ROOT).as_posix(), wanted)
    ]
    faults = [fault for path in files for fault in faults_of(ROOT, path)]
    return sorted(faults, key=lambda fault: _draw_key(fault.draw, seed))[:size]


def _is_below(name: str, wanted: Sequence[str]) -> bool:
    return any(name == path or name.startswith(f"{path}/") for path in wanted)


def _draw_key(draw: str, seed: int) -> str:
    """Return the key by which a seed's draw orders a fault."""
    return hashlib.sha256(f"{seed} {draw}".encode()).hexdigest()


def _kept(path: Path) -> dict[str, dict[str, Any]]:
    lines = path.read_text().splitlines() if path.exists() else []
    return {result["key"]: result for result in map(json.loads, lines)}


def _print_table(faults: Sequence[Fault], results: Mapping[str, dict[str, Any]]) -> None:
    """Print the surviving faults, a row per package, and a row of totals."""
    of_package: dict[str, Counter[str]] = defaultdict(Counter)
    for fault in faults:
        if key(fault) in UNSEEN:
            of = "unseen"
        elif results[key(fault)]["caught_by"]:
            of = "caught"
        else:
            of = "survived"
            print(f"{key(fault)}  {fault}")
        of_package[fault.path.partition("/")[0]][of] += 1
    for name, of in (*sorted(of_package.items()), ("all", sum(of_package.values(), Counter()))):
        print(f"{name}: caught {of['caught']} of {of.total()}; {of['unseen']} cannot be seen")


if __name__ == "__main__":
    sys.exit(main())
