"""Chooses tests to run against a fault: those that reach its function, the cheapest first."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.mutants.copies import product_files
from tests.mutants.faults import Fault
from tests.mutants.places import function_names
from tests.mutants.reach import Reach

_GROUPS = (
    ("tests/refusals/", 10.0),
    ("tests/golden/", 25.0),
    ("tests/", 25.0),
)
"""The maximum total seconds of the tests of each table, and of the tests of all other files."""

_LONGEST = 60.0
"""Tests that take more than this number of seconds are not run against faults."""

_ROW = 1.0
"""The maximum number of seconds that a refusal counts, because the first refusal in a process also
loads libraries."""

_STEPS = 3
"""The length up to which chains of imports of a module are followed; kernels call kernels."""

_MOST = 400
"""The maximum number of tests that run against one fault; to collect more would take longer than to
run them."""


@dataclass
class Choice:
    """Chooses tests by the functions that they reach."""

    root: Path
    reach: Reach
    below: tuple[str, ...] = ("tests/",)
    """The prefixes of the paths of tests to choose from."""
    unreliable: set[str] = field(default_factory=set)
    """Tests that have failed although no fault was present."""
    patience: float = 1.0
    """The factor by which the time that tests may take is multiplied."""

    def tests(self, fault: Fault) -> list[str]:
        """Return the tests for a fault, in the order in which to run them."""
        groups: dict[str, list[str]] = {group: [] for group, _ in _GROUPS}
        for test in self._reaching(fault):
            groups[next(group for group in groups if test.startswith(group))].append(test)
        ordered = [
            test
            for group, seconds in _GROUPS
            for test in self._cheapest(groups[group], seconds * self.patience)
        ]
        # Cheap tests run before golden commands.
        return sorted(ordered, key=lambda test: test.startswith("tests/golden/"))

    def seconds(self, test: str) -> float:
        """Return the time that a test took, in seconds."""
        return self.reach.tests[test][0]

    def _cheapest(self, tests: Iterable[str], left: float) -> Iterator[str]:
        """Yield tests while time is left; of equally cheap tests, first those that reach less."""
        order = sorted(tests, key=lambda test: (round(self._cost(test), 1), self._width(test)))
        for test in order[:_MOST]:
            if left <= 0 or self._cost(test) > _LONGEST:
                return
            left -= self._cost(test)
            yield test

    def _cost(self, test: str) -> float:
        seconds = self.seconds(test)
        return min(seconds, _ROW) if test.startswith("tests/refusals/") else seconds

    def _width(self, test: str) -> int:
        return len(self.reach.tests[test][1])

    def _reaching(self, fault: Fault) -> list[str]:
        for functions in self._candidates(fault):
            wanted = {self._numbers[name] for name in functions if name in self._numbers}
            found = {test for number in wanted for test in self._by_function.get(number, ())}
            found = {test for test in found - self.unreliable if test.startswith(self.below)}
            if found:
                return sorted(found)
        return []

    def _candidates(self, fault: Fault) -> Iterator[list[str]]:
        """Yield lists of functions that use the code of a fault, the closest list first.

        These are the fault's function; for a constant, the functions in its module that name it;
        and for a kernel, which numba compiles, and a module that has no functions, the functions of
        the modules that import it.
        """
        if fault.function:
            yield [f"{fault.path}::{fault.function}"]
        source = self._sources[fault.path]
        functions = _functions(fault.path, source)
        if not fault.function and (name := _assigned_name(source, fault.line)) is not None:
            word = re.compile(rf"\b{re.escape(name)}\b")
            yield [place for place, text in functions.items() if word.search(text)]
        yield list(functions)
        paths = {fault.path}
        for _ in range(_STEPS):
            paths = {path for path in self._sources for one in paths if self._imports(path, one)}
            yield [place for path in paths for place in _functions(path, self._sources[path])]

    def _imports(self, path: str, other: str) -> bool:
        return path != other and _import_of(other).search(self._sources[path]) is not None

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {name: number for number, name in enumerate(self.reach.functions)}

    @cached_property
    def _by_function(self) -> Mapping[int, list[str]]:
        found: dict[int, list[str]] = {}
        for test, (_, reached) in self.reach.tests.items():
            for number in reached:
                found.setdefault(number, []).append(test)
        return found

    @cached_property
    def _sources(self) -> Mapping[str, str]:
        return {
            path.relative_to(self.root).as_posix(): path.read_text(encoding="utf-8")
            for path in product_files(self.root)
        }


def _functions(path: str, source: str) -> dict[str, str]:
    """Return the source of each function of a module by function name."""
    return {
        f"{path}::{name}": ast.get_source_segment(source, node) or ""
        for name, node in function_names(ast.parse(source))
    }


def _assigned_name(source: str, line: int) -> str | None:
    """Return the name to which the statement at a line of a module assigns."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            first = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if node.lineno <= line <= (node.end_lineno or line) and isinstance(first, ast.Name):
                return first.id
    return None


def _import_of(path: str) -> re.Pattern[str]:
    """Return a pattern of lines that import a module."""
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    package, _, name = module.rpartition(".")
    return re.compile(
        rf"from {re.escape(module)} import|from {re.escape(package)} import .*\b{name}\b"
    )
