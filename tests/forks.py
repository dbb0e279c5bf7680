"""Runs commands as forks of a process that has already imported the modules of their package.

Each fork has its own folder, outputs and environment, and its changes to the process end with it.
Python, torch and DeepSpeed need seven seconds of CPU time to start, while a fork needs a few
hundredths. (A fork of the process that runs all kinds of tests, which uses a gigabyte of memory,
would need a fifth of a second.)

    python -m tests.forks PACKAGE RUN

starts the server of a package for the processes of one run of pytest. The server ends when the last
of these has ended. A client writes lines of JSON. A line is either a job, to which the server
replies with the process ID of the fork, or such an ID, to which it replies with the exit code.
"""

import ctypes
import importlib
import json
import logging
import os
import pickle
import runpy
import signal
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from multiprocessing import forkserver
from pathlib import Path
from typing import IO, Any, NoReturn

from shards.errors import UserError
from tests.mutants.copies import MARKS

ROOT = Path(__file__).parents[1]
MAX_SECONDS = 300.0
"""The time limit of a command, in seconds, on a busy machine."""
PRELOADED = {
    "pipelines": (
        "apache_beam",
        "pipelines.job.build",
        "pipelines.job.append",
        "pipelines.job.estimate",
        # The modules above import this one lazily.
        "fastokens",
        "jinja2",
        "pyarrow.dataset",
        "tiktoken",
    ),
    "shards": (
        "shards.dataset_commands",
        "shards.maintenance.compact",
        "shards.sampling.trace",
        "pandas",
    ),
    "trainer": (
        "trainer.hooks",
        "trainer.finetune.task",
        "trainer.evaluate.evaluate",
        "trainer.generate.writer",
        "trainer.export.export",
        # The modules above import these lazily, which takes a second or more in each process.
        "deepspeed.module_inject.auto_ep_layer",
        "deepspeed.runtime.superoffload.superoffload_stage3",
        "deepspeed.runtime.zero.muon.muon_optimizer",
        "pandas",
        "pytest",
        "torch._dynamo",
        "torch.utils.tensorboard",
        "torchmetrics.functional.text",
        "trainer.evaluate.harness",
    ),
}
"""Modules that the server of a package imports, if installed, so that no job has to import them."""
INHERITED = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", MARKS)
_PR_SET_PDEATHSIG = 1
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name in INHERITED},
    "COLUMNS": "100",
    "DS_ACCELERATOR": "cpu",
    "HF_HUB_OFFLINE": "1",
    "LC_ALL": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": str(ROOT),
    "TZ": "UTC",
}


@dataclass(frozen=True)
class Job:
    """A command, or lines of Python, with plain values, because it is sent to another process."""

    words: Sequence[str]
    folder: str
    outputs: Sequence[str]
    """Paths of the files for standard output and standard error, perhaps the same file."""
    python: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    new_process: bool = False
    """Whether to start a new Python process instead of a fork."""
    pickled: str = ""
    """A function, made by `pickled_call`, to call in the process before the command."""


def pickled_call(prepare: Callable[[], None] | None) -> str:
    """Return a module's function, or a partial of one, as text for `Job.pickled`."""
    return "" if prepare is None else pickle.dumps(prepare).hex()


def rank_environment(rank: int, ranks: int, *, port: int, local: int) -> dict[str, str]:
    """Return the environment variables that give torch its rank, globally and on its node."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(local),
        "WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


@dataclass
class RunningJob:
    """A job that is running or has ended."""

    package: str
    pid: int
    code: int | None = None
    """The exit code; negative if a signal ended the job, as in subprocess; None while it runs."""

    def wait(self, seconds: float = MAX_SECONDS) -> int | None:
        """Wait up to some seconds; return the exit code, or None if the job is still running."""
        if self.code is None:
            self.code = _request(self.package, {"pid": self.pid, "seconds": seconds})
        return self.code

    def signal(self, number: int) -> None:
        """Send a signal to the job if it is running."""
        if self.wait(0) is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the job if it is running, and wait for its end."""
        self.signal(signal.SIGKILL)
        self.wait()


def start(package: str, job: Job) -> RunningJob:
    """Start a job of a package, which is pipelines, shards or trainer."""
    pid = _request(package, asdict(job))
    assert pid is not None
    return RunningJob(package, pid)


def run(package: str, job: Job) -> int:
    """Run a job to its end, killing it if it takes too long, and return the exit code."""
    return wait_or_kill(start(package, job))


def wait_or_kill(started: RunningJob) -> int:
    """Wait for a job, killing it if it takes too long, and return the exit code."""
    if started.wait() is None:
        started.kill()
    assert started.code is not None
    return started.code


def _request(package: str, query: Mapping[str, Any]) -> int | None:
    """Send a request to the server of a package, and return the server's reply."""
    if package not in _servers:
        with _connect(package) as connection:
            _servers[package] = connection.makefile("rw")  # the file keeps the connection open
    stream = _servers[package]
    stream.write(json.dumps(query) + "\n")
    stream.flush()
    reply: int | None = json.loads(stream.readline())
    return reply


_servers: dict[str, IO[str]] = {}
"""The connections to the servers, by package."""


def _connect(package: str) -> socket.socket:
    """Connect to a package's server, which all workers of a run of pytest share."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    connection = socket.socket(socket.AF_UNIX)
    if connection.connect_ex(_address(package, run)):
        words = [sys.executable, "-m", "tests.forks", package, run]
        outputs = [(os.POSIX_SPAWN_DUP2, 2, 1)]
        # The server may outlive this process. It gets its own session so that Ctrl-C does not reach
        # it.
        os.posix_spawn(words[0], words, ENVIRONMENT, file_actions=outputs, setsid=True)
        while connection.connect_ex(_address(package, run)):
            time.sleep(0.01)
    return connection


def _address(package: str, run: str) -> str:
    """Return an abstract Linux address, which is free again once the server has ended."""
    return f"\0corpusmill-{run}-{package}"


def main(package: str, run: str) -> None:
    """Serve each client by a fork of this process, until all clients have disconnected."""
    with socket.socket(socket.AF_UNIX) as listening:
        try:
            listening.bind(_address(package, run))
        except OSError:  # a different pytest worker started the server first
            return
        listening.listen()
        import_package(package)
        forks = {_serve_client(package, listening.accept()[0])}
        listening.settimeout(0.5)
        while forks:
            with suppress(TimeoutError):
                forks.add(_serve_client(package, listening.accept()[0]))
            forks -= {pid for pid in forks if os.waitpid(pid, os.WNOHANG)[0]}


def die_with_parent() -> None:
    """Make the kernel kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def fork_servers(*packages: str) -> None:
    """Fork the servers of packages (default: all) from this process, which has the libraries."""
    for package in packages or PRELOADED:
        ours, theirs = socket.socketpair()
        _serve_client(package, theirs)
        with ours:
            _servers[package] = ours.makefile("rw")


def _serve_client(package: str, connection: socket.socket) -> int:
    """Fork a process that serves one client until it disconnects; return the process ID."""
    pid = os.fork()
    if not pid:
        os.environ.update(ENVIRONMENT)
        try:
            die_with_parent()
            stream = connection.makefile("rw")
            for number, line in enumerate(stream):
                if not number:  # tests that run no commands of the package need no libraries
                    import_package(package)
                query = json.loads(line)
                reply = _wait_for_child(**query) if "pid" in query else _fork_job(Job(**query))
                stream.write(f"{json.dumps(reply)}\n")
                stream.flush()
        finally:
            os._exit(1)
    connection.close()
    return pid


def import_package(package: str) -> None:
    """Import the modules that commands of a package use."""
    for module in PRELOADED[package]:
        with suppress(ImportError):
            importlib.import_module(module)


def _fork_job(job: Job) -> int:
    """Fork a process that runs the job; return its process ID."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        _run_job(job)
    return pid


def _wait_for_child(pid: int, seconds: float) -> int | None:
    """Wait up to some seconds for a child; return the exit code, or None if it is running."""
    end = time.monotonic() + seconds
    pause = 0.002
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() >= end:
            return None
        time.sleep(pause)
        pause = min(0.02, pause * 1.5)
    return os.waitstatus_to_exitcode(ended[1])


def _run_job(job: Job) -> NoReturn:
    """Run the job in this process, which is a fork, then end the process."""
    code = 1
    try:
        die_with_parent()
        _redirect(Path(job.folder), job.outputs)
        os.environ.update({**ENVIRONMENT, **job.env})
        if job.new_process:
            rest = ["-c", job.python] if job.python else [*_by_name(job.words), *job.words]
            os.execv(sys.executable, [sys.executable, *rest])
        if job.pickled:
            pickle.loads(bytes.fromhex(job.pickled))()
        code = _code_of_python(job.python) if job.python else _code_of_command(job.words)
    except BaseException:  # noqa: BLE001 - the traceback fails the test
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _redirect(folder: Path, outputs: Sequence[str]) -> None:
    """Change to a folder, redirect the outputs, and undo the settings of earlier tests."""
    os.chdir(folder)
    for number, path in zip((0, 1, 2), (os.devnull, *outputs), strict=True):
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        os.dup2(opened, number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - descriptors
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, buffering=1)  # noqa: SIM115
    logging.getLogger().handlers.clear()
    # A fork server that an earlier test started is not a child of this process.
    forkserver._forkserver._forkserver_pid = None  # type: ignore[attr-defined]
    # Modules that are run by name were already imported.
    warnings.filterwarnings("ignore", category=RuntimeWarning, module="runpy")
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    # Earlier tests may have imported modules with these names.
    for path in folder.glob("*.py"):
        sys.modules.pop(path.stem, None)


def _by_name(words: Sequence[str]) -> Sequence[str]:
    """Return the words after -m, or the words alone if the first is a script."""
    return () if words[0].endswith(".py") else ("-m",)


def _code_of_command(words: Sequence[str]) -> int:
    """Run a module or a script with its arguments, and return the exit code."""
    sys.argv = [*words]
    sys.orig_argv = [sys.executable, *_by_name(words), *words]
    try:
        if _by_name(words):
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def _code_of_python(lines: str) -> int:
    """Run lines of Python; print any error, and return 2 for a UserError, 1 for other errors."""
    try:
        exec(compile(lines, "row", "exec"), {"__name__": "row"})  # the lines are from our tables
    except Exception as error:  # noqa: BLE001 - the row expects a certain one
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 2 if isinstance(error, UserError) else 1
    return 0


if __name__ == "__main__":
    main(*sys.argv[1:])
