"""A pytest plugin that records the functions of the product that each test reaches.

Shared fixtures are recorded separately, and the functions that a fixture reaches count for each
test that uses the fixture. Each test writes one line of JSON to `$CORPUSMILL_REACH/WORKER.jsonl`.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.mutants.copies import MARKS

REACH = "CORPUSMILL_REACH"
"""The environment variable that contains the path of the folder of records."""


class Recorder:
    """Collects the marks of the current test and of shared fixtures."""

    def __init__(self, marks: Path) -> None:
        """Map the file of marks, shared with this process's children, into memory."""
        self._marks: Any = np.memmap(marks, np.uint8, "r+")
        self._size = len(self._marks)
        self._lines = marks.with_suffix(".jsonl").open("a")
        self._current = np.zeros(self._size, bool)
        self._fixtures: dict[str, Any] = {}
        self._passed = True
        self._seconds = 0.0

    def _take(self) -> Any:
        """Return the marks made since the last call, and clear them."""
        taken = self._marks.astype(bool)
        self._marks[:] = 0
        return taken

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        self._take()
        self._current[:] = False
        self._passed, self._seconds = True, 0.0
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        self._current |= self._take()
        start = time.monotonic()
        yield
        taken = self._take()
        self._current |= taken
        known = self._fixtures.setdefault(_key(fixturedef), [np.zeros(self._size, bool), 0.0])
        known[0] |= taken
        known[1] = time.monotonic() - start

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._passed &= report.outcome != "failed"
        if report.when == "call":
            self._passed &= report.outcome == "passed"
            self._seconds = report.duration

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_teardown(self, item: Any) -> Iterator[None]:
        yield
        reached = self._current | self._take()
        seconds = self._seconds
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            known = self._fixtures.get(_key(definitions[-1]))
            if known is not None:
                reached |= known[0]
                seconds += known[1] if definitions[-1].scope == "function" else 0
        line = {
            "test": item.nodeid,
            "passed": self._passed,
            "seconds": round(seconds, 3),
            "reached": np.flatnonzero(reached).tolist(),
        }
        self._lines.write(json.dumps(line) + "\n")
        self._lines.flush()


def _key(fixture: Any) -> str:
    return f"{fixture.baseid}::{fixture.argname}"


def _make_marks() -> Path | None:
    """In a process that runs tests, create the file of marks before importing the product."""
    if REACH not in os.environ:
        return None
    folder = Path(os.environ[REACH])
    path = folder / f"{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}.marks"
    path.write_bytes(bytes(int((folder / "size").read_text())))
    os.environ[MARKS] = str(path)
    return path


_PATH = _make_marks()


def pytest_configure(config: pytest.Config) -> None:
    """Register the recorder in the processes that run tests."""
    if _PATH is not None:
        config.pluginmanager.register(Recorder(_PATH))
