"""Runs a row of the table of refusals, and checks the outcome."""

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tests import forks
from tests.refusals.messages import message_pattern
from tests.refusals.refusal import Accepted, Refusal

LOCKS = "*.lock"
"""A pattern of files that any command may write: locks, which are empty and remain."""


@dataclass(frozen=True)
class Done:
    """The result of a command."""

    code: int
    out: str
    err: str


def check(row: Refusal, folder: Path) -> None:
    """Run a row in its own folder, and check the exit code, the output and the files."""
    folder.mkdir()
    row.setup(folder)
    before = content_hashes(folder)
    done = run(row, folder)
    shown = f"{done.out}{done.err}"
    assert done.code == row.code, f"code {done.code}, not {row.code}\n{shown}"
    assert "Traceback" not in shown, shown
    if isinstance(row, Accepted):
        assert re.search(row.message, _folded(shown)), shown
    else:
        _check_message(row, done)
    written = changes(before, content_hashes(folder))
    allowed = (LOCKS, *row.may_write)
    extra = [path for path in written if not any(fnmatchcase(path, x) for x in allowed)]
    assert not extra, f"written or changed: {extra}\n{shown}"


def _check_message(row: Refusal, done: Done) -> None:
    """Check that the output ends with the row's message, and that the text before is expected."""
    rest, paragraph = _last_paragraph(done.err)
    if row.program:
        assert paragraph.startswith(f"{row.program}: "), done.err
    message = message_pattern(row)
    assert re.search(message, _folded(paragraph)), f"not {message!r}:\n{paragraph}"
    printed = _folded(done.out + rest)
    if row.output_before:
        assert re.search(row.output_before, printed), f"printed before:\n{printed}"
    else:
        assert not printed, f"printed before:\n{printed}"


def paragraph_of(done: Done) -> str:
    """Return the message, which is the last paragraph, on one line."""
    return _folded(_last_paragraph(done.err)[1])


def _last_paragraph(text: str) -> tuple[str, str]:
    """Split off the last paragraph, in which all lines after the first are indented."""
    start = [found.start() for found in re.finditer(r"(?m)^(?=\S)", text)]
    return (text[: start[-1]], text[start[-1] :]) if start else (text, "")


def _folded(text: str) -> str:
    return " ".join(text.split())


def content_hashes(folder: Path) -> Mapping[str, str]:
    """Return a hash of every file and folder below a folder, by path."""
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
    """Return the paths that were added, deleted or changed between two states of a folder."""
    return sorted(x for x in before | after if before.get(x) != after.get(x))


def run(row: Refusal, folder: Path) -> Done:
    """Run the command of a row in a folder, and return the result."""
    words = shlex.split(row.command)
    outputs = [folder.with_name(f"{folder.name}.{name}") for name in ("out", "err")]
    job = forks.Job(
        words=words,
        python=row.python,
        env=dict(row.env),
        new_process=row.new_process,
        folder=str(folder),
        outputs=[str(path) for path in outputs],
    )
    code = forks.run((words or ["pipelines"])[0].partition(".")[0], job)
    return Done(code, *(path.read_text(errors="backslashreplace") for path in outputs))
