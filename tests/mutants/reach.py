"""Finds the functions that each test reaches, and each test's time, by running all once.

The results are kept in a file. Only new and changed test files are run again.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.mutants.copies import ROOT, add_marks, copy_repository
from tests.mutants.recorder import REACH

_LEFT_OUT = ("tests/engines", "tests/mutants", "tests/bench")
"""Tests of clusters take minutes each; the remaining two folders do not test the product."""

TABLES = ("tests/golden/", "tests/refusals/")
"""Folders of tests of whole commands; each row is a test, and files next to the test define it."""


@dataclass
class Reach:
    """The functions that tests reach."""

    files: dict[str, str] = field(default_factory=dict)
    """The hash that each test file had when it last ran."""
    functions: list[str] = field(default_factory=list)
    tests: dict[str, tuple[float, list[int]]] = field(default_factory=dict)
    """The time of each test that passed, in seconds, and the numbers of the functions that it
    reached."""

    @classmethod
    def load(cls, path: Path) -> "Reach":
        """Return the content of a file, or an empty object if the file is missing."""
        if not path.exists():
            return cls()
        kept = json.loads(path.read_text())
        return cls(kept["files"], kept["functions"], kept["tests"])

    def save(self, path: Path) -> None:
        """Write the results to a file."""
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(self.__dict__))
        fresh.replace(path)

    def add(self, functions: Sequence[str], lines: Sequence[dict[str, Any]]) -> None:
        """Add records of tests, in which numbers refer to `functions` instead of this list."""
        known = {name: number for number, name in enumerate(self.functions)}
        for name in functions:
            if name not in known:
                known[name] = len(self.functions)
                self.functions.append(name)
        for line in lines:
            self.tests.pop(line["test"], None)
            if line["passed"]:
                reached = [known[functions[number]] for number in line["reached"]]
                self.tests[line["test"]] = (line["seconds"], reached)

    def forget(self, files: Collection[str]) -> None:
        """Delete the results of the tests in some files."""
        self.tests = {
            test: found
            for test, found in self.tests.items()
            if test.partition("::")[0] not in files
        }


def current_reach(folder: Path, *, processes: int, below: Sequence[str]) -> Reach:
    """Return the functions that tests reach, after running new and changed test files.

    Args:
        folder: The folder for the results and the copy of the repository.
        processes: The number of processes that run tests.
        below: The prefixes of the paths of the test files to use.
    """
    kept = folder / "reach.json"
    reach = Reach.load(kept)
    now = _test_files(tuple(below))
    gone = {name for name in reach.files if not (ROOT / name).exists()}
    changed = [name for name, digest in now.items() if reach.files.get(name) != digest]
    tables = [name for name in changed if name.startswith(TABLES)]
    whole = [name for name in changed if name not in tables]
    reach.forget({*whole, *gone})
    reach.files = {name: value for name, value in reach.files.items() if name not in gone}
    # A row that was edited reaches the same functions, so only new rows are run.
    wanted = [*whole, *(test for test in _collected(tables) if test not in reach.tests)]
    if wanted:
        print(f"recording the functions that {len(wanted)} test files and rows reach", flush=True)
        functions, lines = _run(folder, wanted, processes=processes)
        failed = sum(not line["passed"] for line in lines)
        if failed:
            print(f"{failed} of {len(lines)} tests failed and are not used: {folder}/reach.log")
        reach.add(functions, lines)
    reach.files |= {name: now[name] for name in changed}
    reach.save(kept)
    return reach


def _test_files(below: tuple[str, ...]) -> dict[str, str]:
    names = {
        path.relative_to(ROOT).as_posix(): _digest(path)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
    }
    return {
        name: digest
        for name, digest in names.items()
        if name.startswith(below) and not name.startswith(_LEFT_OUT)
    }


def _digest(path: Path) -> str:
    """Return a hash of a test file and of the tables next to it."""
    is_table = path.relative_to(ROOT).as_posix().startswith(TABLES)
    patterns = ("*.py", "messages/*.json") if is_table else ()
    tables = sorted(found for each in patterns for found in path.parent.glob(each))
    content = b"".join(each.read_bytes() for each in [path, *tables])
    return hashlib.sha256(content).hexdigest()[:16]


def _collected(files: Sequence[str]) -> list[str]:
    """Return the ids of the tests in some files."""
    if not files:
        return []
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", *files]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if "::" in line]


def _run(
    folder: Path, files: Sequence[str], *, processes: int
) -> tuple[list[str], list[dict[str, Any]]]:
    """Run test files in a copy whose functions mark that they ran."""
    copy = copy_repository(folder / "marked")
    functions = add_marks(copy)
    records = folder / "records"
    records.mkdir(parents=True, exist_ok=True)
    for path in records.iterdir():
        path.unlink()
    (records / "size").write_text(str(len(functions)))
    command = [sys.executable, "-m", "pytest", "-p", "tests.mutants.recorder", "-q"]
    command += ["-n", str(processes), "-p", "no:cacheprovider", "-m", "not nightly"]
    environment = {**os.environ, "PYTHONPATH": str(copy), REACH: str(records)}
    with (folder / "reach.log").open("w") as log:
        subprocess.run(
            [*command, *files], cwd=copy, env=environment, stdout=log, stderr=log, check=False
        )
    lines = [
        json.loads(line)
        for path in sorted(records.glob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    return functions, lines
