"""A command as a fork of a process that has imported what commands of its wing need.

It has a folder, outputs and an environment of its own, and whatever it changes in the process ends
with it. Python, torch and DeepSpeed need seven CPU seconds to start, the fork a few hundredths. (Of
a process that runs all kinds of tests, with a gigabyte in memory, it would take a fifth of one.)

    python -m tests.job WING

reads jobs as lines of JSON and answers each with the number of its process; asked for such a
number, it answers with the exit code.
"""

import atexit
import importlib
import json
import logging
import os
import pickle
import runpy
import signal
import subprocess
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
from tests.soak.commands import die_with_parent

ROOT = Path(__file__).parents[1]
LIMIT = 300.0
"""Seconds that a command may take on a busy machine."""
IMPORTED = {
    "pipelines": (
        "apache_beam",
        "pipelines.run.build",
        "pipelines.run.append",
        "pipelines.planning.run",
    ),
    "shards": ("shards.dataset_commands", "shards.compact", "shards.trace", "pandas"),
    "trainer": (
        "trainer.pretraining",
        "trainer.finetune.items",
        "trainer.evaluating",
        "trainer.decode.writer",
        "trainer.export.export",
        # What those load lazily: a second or more in each process.
        "deepspeed.runtime.superoffload.superoffload_stage3",
        "deepspeed.runtime.zero.muon.muon_optimizer",
        "pandas",
        "pytest",
        "torch._dynamo",
        "torch.utils.tensorboard",
        "torchmetrics.functional.text",
    ),
}
"""What is imported before the first job of a wing, if it is there, so that no job does it again."""
KEPT = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", MARKS)
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
    """What is called in the process before the command, as `before` makes it."""


def before(prepare: Callable[[], None] | None) -> str:
    """Return a function of a module, or a partial of one, as a job takes it."""
    return "" if prepare is None else pickle.dumps(prepare).hex()


@dataclass
class Started:
    """A job that runs, or has ended."""

    wing: str
    pid: int
    code: int | None = None
    """The exit code, as subprocess has it."""

    def wait(self, seconds: float = LIMIT) -> int | None:
        """Return the exit code, or None if the job still runs after so many seconds."""
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
    started = start(wing, job)
    if started.wait() is None:
        started.kill()
    assert started.code is not None
    return started.code


def _ask(wing: str, asked: Mapping[str, Any]) -> int | None:
    """Return what the process of a wing answers."""
    if wing not in _wings:
        _wings[wing] = _begun(wing)
    questions, answers = _wings[wing]
    questions.write(json.dumps(asked) + "\n")
    questions.flush()
    answer: int | None = json.loads(answers.readline())
    return answer


_wings: dict[str, tuple[IO[str], IO[str]]] = {}
"""The processes that jobs are forked from, by what they read and what they write; each ends when
this one closes its input."""


def _begun(wing: str) -> tuple[IO[str], IO[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.job", wing],
        cwd=ROOT,
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(process.__exit__, None, None, None)
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def fork_wings() -> None:
    """Fork the processes of all wings from this one, which has imported the libraries."""
    for wing in IMPORTED:
        (asked, questions), (answers, answer) = os.pipe(), os.pipe()
        if not os.fork():
            die_with_parent()
            os.dup2(asked, 0)
            os.dup2(answer, 1)
            os.environ.update(ENVIRONMENT)
            try:
                main(wing)
            finally:
                os._exit(1)
        os.close(asked)
        os.close(answer)
        _wings[wing] = os.fdopen(questions, "w"), os.fdopen(answers)


def main(wing: str) -> None:
    """Run jobs until there are no more."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # for what libraries say when they are imported
    for number, line in enumerate(open(0, closefd=False)):  # noqa: SIM115 - a descriptor
        if not number:
            _import_wing(wing)
        asked = json.loads(line)
        answer = _waited(**asked) if "pid" in asked else _forked(Job(**asked))
        answers.write(f"{json.dumps(answer)}\n")


def _import_wing(wing: str) -> None:
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
            rest = ["-c", job.python] if job.python else ["-m", *job.words]
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


def _code_of_command(words: Sequence[str]) -> int:
    """Return the exit code of `python -m` with these words."""
    module = words[0]
    sys.argv = [module, *words[1:]]
    sys.orig_argv = [sys.executable, "-m", *words]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def _code_of_python(lines: str) -> int:
    """Return 0, or what the error that the lines raise amounts to; tell that error."""
    try:
        exec(compile(lines, "row", "exec"), {"__name__": "row"})  # what rows are for
    except Exception as error:  # noqa: BLE001 - the row says which it is
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 2 if isinstance(error, UserError) else 1
    return 0


if __name__ == "__main__":
    main(sys.argv[1])
