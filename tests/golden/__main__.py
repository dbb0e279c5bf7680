"""Run rows of the golden table: python -m tests.golden [NAME …] [--update] [--list]."""

import argparse
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from tests.golden.expected import figures, update
from tests.golden.outcome import differences
from tests.golden.runner import outcome
from tests.golden.table import ROWS

_SHOWN = 40


def main() -> int:
    arguments = _arguments()
    names = arguments.names or list(ROWS)
    if unknown := [name for name in names if name not in ROWS]:
        sys.exit(f"no such row: {', '.join(unknown)}; --list shows all")
    if arguments.list:
        for name in names:
            print(f"{name:24} {'fast' if ROWS[name].fast else '    '} {ROWS[name].about}")
        return 0
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(2) as pool:
        home = Path(arguments.folder or scratch)
        runs = [pool.submit(_checked, name, home, arguments.update) for name in names]
        return 0 if all([run.result() for run in runs]) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--update", action="store_true", help="write what they give as figures")
    parser.add_argument("--list", action="store_true", help="list the rows")
    parser.add_argument("--folder", help="an empty folder, where the rows' folders stay to look at")
    return parser.parse_args()


def _checked(name: str, home: Path, new: bool) -> bool:
    if missing := [module for module in ROWS[name].needs if find_spec(module) is None]:
        print(f"{name}: left out, it needs {', '.join(missing)}", flush=True)
        return True
    start = time.monotonic()
    try:
        found = outcome(name, ROWS, home)
    except Exception:  # noqa: BLE001  the other rows run on
        print(f"{name}: failed\n{traceback.format_exc(limit=-2)}", flush=True)
        return False
    took = time.monotonic() - start
    lines = list(differences(figures(name), found))
    if not lines:
        print(f"{name}: ok {took:.1f} s", flush=True)
        return True
    told = "\n".join(f"  {line}" for line in lines[:_SHOWN])
    rest = f"\n  and {len(lines) - _SHOWN} more" * (len(lines) > _SHOWN)
    print(f"{name}: {'changed' if new else 'differs'} {took:.1f} s\n{told}{rest}", flush=True)
    if new:
        update(name, found)
    return new


if __name__ == "__main__":
    sys.exit(main())
