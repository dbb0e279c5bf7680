"""Runs a row of the table, and compares the outcome with the row."""

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tests import forks
from tests.refusals.refusal import Accepted, Refusal
from tests.refusals.said import expected

LOCKS = "*.lock"
"""Files that a command may leave next to a dataset in any case: a lock is empty and stays."""


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
    """Assert that the last paragraph is the one of the row, and that nothing else was printed."""
    rest, paragraph = _last_paragraph(done.err)
    if row.program:
        assert paragraph.startswith(f"{row.program}: "), done.err
    says = expected(row)
    assert re.search(says, _folded(paragraph)), f"not {says!r}:\n{paragraph}"
    said = _folded(done.out + rest)
    if row.before:
        assert re.search(row.before, said), f"not {row.before!r} before:\n{said}"
    else:
        assert not said, f"said before:\n{done.out}{rest}"


def paragraph_of(done: Done) -> str:
    """Return the last paragraph on one line."""
    return _folded(_last_paragraph(done.err)[1])


def _last_paragraph(text: str) -> tuple[str, str]:
    """Return the text before the last paragraph, whose further lines are indented, and that."""
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
    outputs = [folder.with_name(f"{folder.name}.{name}") for name in ("out", "err")]
    asked = forks.Job(
        words=words,
        python=row.python,
        env=dict(row.env),
        process=row.process,
        folder=str(folder),
        outputs=[str(path) for path in outputs],
    )
    code = forks.run((words or ["pipelines"])[0].partition(".")[0], asked)
    return Done(code, *(path.read_text(errors="backslashreplace") for path in outputs))
