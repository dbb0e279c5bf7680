"""A command as a fork of a process that has imported what commands of its wing need.

It has a folder, outputs and an environment of its own, and whatever it changes in the process ends
with it. Python, torch and DeepSpeed need seven CPU seconds to start, the fork a few hundredths. (Of
a process that runs all kinds of tests, with a gigabyte in memory, it would take a fifth of one.)

    python -m tests.job WING SOCKET

listens there for the processes of one run of pytest, and ends when they have. It reads jobs as
lines of JSON and answers each with the number of its process; asked for such a number, it answers
with the exit code.
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
LIMIT = 300.0
"""Seconds that a command may take on a busy machine."""
IMPORTED = {
    "pipelines": (
        "apache_beam",
        "pipelines.job.build",
        "pipelines.job.append",
        "pipelines.job.estimate",
        # Loaded lazily by those.
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
        # Loaded lazily by those: a second or more in each process.
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
"""Modules to import before the first job of a wing, if installed, so that no job imports them."""
KEPT = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", MARKS)
_PR_SET_PDEATHSIG = 1
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name in KEPT},
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
    """A command, or lines of Python; plain values, for it may be sent to another process."""

    words: Sequence[str]
    folder: str
    outputs: Sequence[str]
    """Files for the standard output and the standard error, which may be the same."""
    python: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    process: bool = False
    """Start Python anew instead of forking this process."""
    pickled: str = ""
    """The call in the process before the command, as `before` makes it."""


def before(prepare: Callable[[], None] | None) -> str:
    """Return a function of a module, or a partial of one, as a job takes it."""
    return "" if prepare is None else pickle.dumps(prepare).hex()


def place_of(rank: int, ranks: int, *, port: int, local: int) -> dict[str, str]:
    """Return the variables by which torch finds a rank's place among the others and on its node."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(local),
        "WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


@dataclass
class Started:
    """A job that runs, or has ended."""

    wing: str
    pid: int
    code: int | None = None
    """The exit code, as subprocess has it."""

    def wait(self, seconds: float = LIMIT) -> int | None:
        """Return the exit code, or None if the job still runs after this number of seconds."""
        if self.code is None:
            self.code = _ask(self.wing, {"pid": self.pid, "seconds": seconds})
        return self.code

    def signal(self, number: int) -> None:
        """Send a signal to the job, if it runs."""
        if self.wait(0) is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the job, if it runs, and wait for its end."""
        self.signal(signal.SIGKILL)
        self.wait()


def start(wing: str, job: Job) -> Started:
    """Start a job of a wing: pipelines, shards or trainer."""
    pid = _ask(wing, asdict(job))
    assert pid is not None
    return Started(wing, pid)


def run(wing: str, job: Job) -> int:
    """Return the exit code of a job, which is killed if it takes too long."""
    return ended(start(wing, job))


def ended(started: Started) -> int:
    """Wait for a job, which is killed if it takes too long, and return its exit code."""
    if started.wait() is None:
        started.kill()
    assert started.code is not None
    return started.code


def _ask(wing: str, asked: Mapping[str, Any]) -> int | None:
    """Return the answer of the process of a wing."""
    if wing not in _wings:
        with _connected(wing) as connection:
            _wings[wing] = connection.makefile("rw")  # which keeps it open
    stream = _wings[wing]
    stream.write(json.dumps(asked) + "\n")
    stream.flush()
    answer: int | None = json.loads(stream.readline())
    return answer


_wings: dict[str, IO[str]] = {}
"""Connections to the processes that jobs are forked from."""


def _connected(wing: str) -> socket.socket:
    """Connect to the process of a wing, which the workers of a run of pytest share."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    connection = socket.socket(socket.AF_UNIX)
    if connection.connect_ex(_address(wing, run)):
        words = [sys.executable, "-m", "tests.job", wing, run]
        outputs = [(os.POSIX_SPAWN_DUP2, 2, 1)]
        # It may live longer than this process, and in another session no Ctrl-C comes to it.
        os.posix_spawn(words[0], words, ENVIRONMENT, file_actions=outputs, setsid=True)
        while connection.connect_ex(_address(wing, run)):
            time.sleep(0.01)
    return connection


def _address(wing: str, run: str) -> str:
    """Return a name of Linux' own name space, which is free again when the process has ended."""
    return f"\0corpusmill-{run}-{wing}"


def main(wing: str, run: str) -> None:
    """Answer all who connect, each by a fork of this process, until they are gone."""
    with socket.socket(socket.AF_UNIX) as listening:
        try:
            listening.bind(_address(wing, run))
        except OSError:  # another worker was faster
            return
        listening.listen()
        import_wing(wing)
        forks = {_fork_to_answer(wing, listening.accept()[0])}
        listening.settimeout(0.5)
        while forks:
            with suppress(TimeoutError):
                forks.add(_fork_to_answer(wing, listening.accept()[0]))
            forks -= {pid for pid in forks if os.waitpid(pid, os.WNOHANG)[0]}


def die_with_parent() -> None:
    """Let this process be killed when the one that forked it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def fork_wings(*wings: str) -> None:
    """Fork the processes of wings, or of all, from this one, which has imported the libraries."""
    for wing in wings or IMPORTED:
        ours, theirs = socket.socketpair()
        _fork_to_answer(wing, theirs)
        with ours:
            _wings[wing] = ours.makefile("rw")


def _fork_to_answer(wing: str, connection: socket.socket) -> int:
    """Return the number of a fork of this process that runs jobs until there are no more."""
    pid = os.fork()
    if not pid:
        os.environ.update(ENVIRONMENT)
        try:
            die_with_parent()
            stream = connection.makefile("rw")
            for number, line in enumerate(stream):
                if not number:  # a test that runs no command of the wing needs none of it
                    import_wing(wing)
                asked = json.loads(line)
                answer = _waited(**asked) if "pid" in asked else _forked(Job(**asked))
                stream.write(f"{json.dumps(answer)}\n")
                stream.flush()
        finally:
            os._exit(1)
    connection.close()
    return pid


def import_wing(wing: str) -> None:
    """Import what commands of a wing use."""
    for module in IMPORTED[wing]:
        with suppress(ImportError):
            importlib.import_module(module)


def _forked(job: Job) -> int:
    """Return the number of a fork of this process that becomes the job."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        _become(job)
    return pid


def _waited(pid: int, seconds: float) -> int | None:
    """Return the exit code of a child, or None if it runs longer than this."""
    end = time.monotonic() + seconds
    pause = 0.002
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() >= end:
            return None
        time.sleep(pause)
        pause = min(0.02, pause * 1.5)
    return os.waitstatus_to_exitcode(ended[1])


def _become(job: Job) -> NoReturn:
    """Run the job in this process, a fork, and end it."""
    code = 1
    try:
        die_with_parent()
        _take_place(Path(job.folder), job.outputs)
        os.environ.update({**ENVIRONMENT, **job.env})
        if job.process:
            rest = ["-c", job.python] if job.python else [*_by_name(job.words), *job.words]
            os.execv(sys.executable, [sys.executable, *rest])
        if job.pickled:
            pickle.loads(bytes.fromhex(job.pickled))()
        code = _code_of_python(job.python) if job.python else _code_of_command(job.words)
    except BaseException:  # noqa: BLE001 - its traceback fails the row
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _take_place(folder: Path, outputs: Sequence[str]) -> None:
    """Make the folder and the outputs those of this process, and forget what tests set up."""
    os.chdir(folder)
    for number, path in zip((0, 1, 2), (os.devnull, *outputs), strict=True):
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        os.dup2(opened, number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - descriptors
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, buffering=1)  # noqa: SIM115
    logging.getLogger().handlers.clear()
    # Another test may have started one: it is a child of that process, and none of this one.
    forkserver._forkserver._forkserver_pid = None  # type: ignore[attr-defined]
    # What runs by its name has been imported before.
    warnings.filterwarnings("ignore", category=RuntimeWarning, module="runpy")
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    # Other tests may have imported modules of these names.
    for path in folder.glob("*.py"):
        sys.modules.pop(path.stem, None)


def _by_name(words: Sequence[str]) -> Sequence[str]:
    """Return the flag by which Python takes the first word for a module, not a script."""
    return () if words[0].endswith(".py") else ("-m",)


def _code_of_command(words: Sequence[str]) -> int:
    """Return the exit code of `python -m`, or of `python` for a script, with these words."""
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
    """Return 0, or what the error that the lines raise amounts to; tell that error."""
    try:
        exec(compile(lines, "row", "exec"), {"__name__": "row"})  # rows are for this
    except Exception as error:  # noqa: BLE001 - the row says which it is
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 2 if isinstance(error, UserError) else 1
    return 0


if __name__ == "__main__":
    main(*sys.argv[1:])
