"""Runs a row: forks this process, which has imported much of what commands need, or starts Python.

A forked command has a folder, an output and an environment of its own, and whatever it changes in
the process ends with it. It takes a twentieth of a second.
"""

import hashlib
import importlib
import logging
import os
import re
import runpy
import shlex
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from multiprocessing import forkserver
from pathlib import Path
from typing import NoReturn

from shards.errors import UserError
from tests.refusals.refusal import Accepted, Refusal
from tests.soak.commands import die_with_parent

ROOT = Path(__file__).parents[2]
LIMIT = 120.0
"""Seconds that a row may take on a busy machine."""
IMPORTED = {
    "pipelines": (
        "apache_beam",
        "pipelines.run.build",
        "pipelines.run.append",
        "pipelines.planning.run",
    ),
    "shards": ("shards.__main__",),
    "trainer": ("torch", "trainer.train"),
}
"""What is imported before the first row of a wing, if it is there, so that no row does it again."""
LOCKS = "*.lock"
"""What a command may leave beside a dataset, whatever becomes of it: a lock is empty and stays."""
ENVIRONMENT = {
    "COLUMNS": "100",
    "HF_HUB_OFFLINE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": str(ROOT),
}


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


def check(row: Refusal, folder: Path) -> None:
    """Run a row in a folder of its own, and assert that all is as it says."""
    folder.mkdir()
    row.scene(folder)
    before = tree(folder)
    done = run(row, folder)
    shown = f"{done.out}{done.err}"
    assert done.code == row.code, f"code {done.code}, not {row.code}\n{shown}"
    assert "Traceback" not in shown, shown
    if isinstance(row, Accepted):
        assert re.search(row.says, _folded(shown)), shown
    else:
        _check_words(row, done)
    written = changes(before, tree(folder))
    allowed = (LOCKS, *row.writes)
    extra = [path for path in written if not any(fnmatchcase(path, x) for x in allowed)]
    assert not extra, f"written or changed: {extra}\n{shown}"


def _check_words(row: Refusal, done: Done) -> None:
    """Assert that the last paragraph is the one of the row, and that nothing else was said."""
    rest, paragraph = _last_paragraph(done.err)
    if row.program:
        assert paragraph.startswith(f"{row.program}: "), done.err
    assert re.search(row.says, _folded(paragraph)), f"not {row.says!r}:\n{paragraph}"
    said = _folded(done.out + rest)
    if row.before:
        assert re.search(row.before, said), f"not {row.before!r} before:\n{said}"
    else:
        assert not said, f"said before:\n{done.out}{rest}"


def _last_paragraph(text: str) -> tuple[str, str]:
    """Return what stands before the last paragraph, whose further lines are indented, and that."""
    start = [found.start() for found in re.finditer(r"(?m)^(?=\S)", text)]
    return (text[: start[-1]], text[start[-1] :]) if start else (text, "")


def _folded(text: str) -> str:
    return " ".join(text.split())


def tree(folder: Path) -> Mapping[str, str]:
    """Return the hash of all that is below a folder, by path."""
    return {path.relative_to(folder).as_posix(): _content(path) for path in folder.rglob("*")}


def _content(path: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    if not path.is_file():
        return "folder" if path.is_dir() else "special"
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except PermissionError:
        return "closed"


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> Sequence[str]:
    """Return the paths that only one of two trees has, or that are not the same in both."""
    return sorted(x for x in before | after if before.get(x) != after.get(x))


def run(row: Refusal, folder: Path) -> Done:
    """Run what a row says in a folder, and return how it ended."""
    words = shlex.split(row.command)
    wing = (words or ["pipelines"])[0].partition(".")[0]
    if not row.process:
        import_wing(wing)
    outputs = [folder.with_name(f"{folder.name}.{name}") for name in ("out", "err")]
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        _become(row, words, folder, outputs)
    code = _waited(pid)
    return Done(code, *(path.read_text(errors="backslashreplace") for path in outputs))


@cache
def import_wing(wing: str) -> None:
    """Import what rows of pipelines, shards or trainer use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in IMPORTED[wing]:
            with suppress(ImportError):
                importlib.import_module(module)


def _waited(pid: int) -> int:
    """Return the exit code of a child; kill it if it takes too long."""
    end = time.monotonic() + LIMIT
    pause = 0.002
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise TimeoutError(f"it did not end in {LIMIT:.0f} s")
        time.sleep(pause)
        pause = min(0.02, pause * 1.5)
    return os.waitstatus_to_exitcode(ended[1])


def _become(row: Refusal, words: Sequence[str], folder: Path, outputs: Sequence[Path]) -> NoReturn:
    """Run the row in this process, a copy of that of the test, and end it."""
    code = 1
    try:
        die_with_parent()
        _take_place(folder, outputs)
        os.environ.update({**ENVIRONMENT, **row.env})
        if row.process:
            rest = ["-c", row.python] if row.python else ["-m", *words]
            os.execv(sys.executable, [sys.executable, *rest])
        code = _code_of_python(row.python) if row.python else _code_of_command(words)
    except BaseException:  # noqa: BLE001 - its traceback fails the row
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _take_place(folder: Path, outputs: Sequence[Path]) -> None:
    """Make the folder and the outputs those of this process, and forget what tests set up."""
    os.chdir(folder)
    for number, path in zip((0, 1, 2), (os.devnull, *outputs), strict=True):
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - descriptors
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, buffering=1)  # noqa: SIM115
    logging.getLogger().handlers.clear()
    # Another test may have started one: it is a child of that process, and none of this one.
    forkserver._forkserver._forkserver_pid = None  # type: ignore[attr-defined]
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
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
