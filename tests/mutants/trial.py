"""Runs chosen tests in a copy of the repository, in forks of a process that has the libraries.

The first process imports the libraries, never the product. For each trial it forks a process, which
imports the tests and the faulty product from the copy, and ends at the first test that fails.
"""

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_LIBRARIES = (
    "numpy",
    "psutil",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pandas",
    "apache_beam",
    "apache_beam.runners.direct.direct_runner",
    "fsspec",
    "hypothesis",
    "ftfy",
    "jieba",
    "jinja2",
    "numba",
    "orjson",
    "sentencepiece",
    "tiktoken",
    "tokenizers",
    "zstandard",
    "torch",
    "deepspeed",
    "deepspeed.runtime.superoffload.superoffload_stage3",
    "deepspeed.runtime.zero.muon.muon_optimizer",
    "torch.nn.attention.flex_attention",
    "torch.utils.tensorboard",
    "torchmetrics.functional.text",
)
_MEMORY_BYTES = 6 << 30
_TEST_SECONDS, _ROW_SECONDS = 15.0, 90.0
"""The time limits of a test and of a golden row, in seconds beyond four times the usual time, in
case a fault causes an endless loop. A golden row may first run the rows that it starts from."""


@dataclass(frozen=True)
class Verdict:
    """The result of a trial."""

    caught_by: str
    """The test that failed; "" if all passed."""
    ran: int
    """The number of tests that ran."""
    seconds: float


class _Plugin:
    """A pytest plugin that runs chosen tests in order, and records the test that fails."""

    def __init__(self, limits: dict[str, float], log: Path) -> None:
        self._limits = limits
        self._log = log
        self._ran = 0

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        order = {test: number for number, test in enumerate(self._limits)}
        chosen = [item for item in items if item.nodeid in order]
        first: dict[str, int] = {}
        for item in sorted(chosen, key=lambda item: order[item.nodeid]):
            first.setdefault(str(item.path), order[item.nodeid])
        # Tests of a file stay together because they share fixtures.
        items[:] = sorted(chosen, key=lambda item: (first[str(item.path)], order[item.nodeid]))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._ran += 1
        self.say(nodeid, running=True)
        faulthandler.dump_traceback_later(self._limits[nodeid], exit=True)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.outcome == "failed":
            self.say(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.outcome == "failed":
            self.say("collecting the tests")

    def say(self, test: str, *, running: bool = False) -> None:
        line = {"caught_by": test, "ran": self._ran, "running": running}
        with self._log.open("a") as file:
            file.write(json.dumps(line) + "\n")


def warm_up() -> None:
    """Import the libraries in the process from which trials are forked."""
    os.environ.update(OMP_NUM_THREADS="1", DS_ACCELERATOR="cpu")
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # The garbage collectors of forks ignore these objects.
    gc.freeze()
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def run_trial(copy: Path, tests: Sequence[tuple[str, float]]) -> Verdict:
    """Run tests in a copy until a test fails.

    Args:
        copy: The root of the copy.
        tests: The id of each test, and the seconds that it usually takes.
    """
    start = time.monotonic()
    scratch = copy.with_name(copy.name + "-scratch")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    limits = {test: _limit(test, seconds) for test, seconds in tests}
    pid = os.fork()
    if not pid:
        _run_tests(copy, scratch, limits)
    code = _wait(pid, most=60 + sum(limits.values()))
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    log = scratch / "said.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    failed = [line for line in lines if not line["running"]]
    last = lines[-1] if lines else {"caught_by": "starting pytest", "ran": 0}
    caught = failed[0]["caught_by"] if failed else "" if code == 0 else last["caught_by"]
    return Verdict(caught, last["ran"], round(time.monotonic() - start, 1))


def _limit(test: str, seconds: float) -> float:
    return 4 * seconds + (_ROW_SECONDS if test.startswith("tests/golden/") else _TEST_SECONDS)


def _wait(pid: int, *, most: float) -> int:
    end = time.monotonic() + most
    while time.monotonic() < end:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -signal.SIGKILL


def _run_tests(copy: Path, scratch: Path, limits: dict[str, float]) -> None:
    """Run tests in this process, then end the process."""
    os.setsid()
    os.chdir(copy)
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.update(PYTHONPATH=str(copy), TMPDIR=str(scratch))
    sys.path.insert(0, str(copy))
    for name in [name for name in sys.modules if name.split(".")[0] == "tests"]:
        del sys.modules[name]
    output = os.open(scratch / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    importlib.import_module("tests.forks").fork_servers()
    files = list(dict.fromkeys(test.partition("::")[0] for test in limits))
    words = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    # Some plugins were already imported with the libraries.
    words += ["-W", "ignore::pytest.PytestAssertRewriteWarning", "--basetemp"]
    code = 3
    try:
        code = int(
            pytest.main(
                [*words, str(scratch / "tests"), *files], [_Plugin(limits, scratch / "said.jsonl")]
            )
        )
    finally:
        os._exit(code)
