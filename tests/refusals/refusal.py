"""A row of the table: a command in a folder, and the paragraph that refuses it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def nothing(folder: Path) -> None:
    """Leave the folder empty."""


def told(text: str) -> str:
    """Return the regular expression of a whole text, in which … stands for anything."""
    return f"^{'.*'.join(map(re.escape, text.split('…')))}$"


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A command line, or lines of Python, that is refused."""

    name: str
    """A few words, unique in the table."""
    command: str = ""
    """The module and its words, as a shell has them: `pipelines.wudao --tokeniser x`."""
    python: str = ""
    """Lines of Python instead: their error is printed as `NAME: message`, with code 2 if it is a
    UserError and 1 if not."""
    says: str = ""
    """A regular expression for the paragraph on one line, white space folded; "": the
    text of `said/` under this name."""
    scene: Callable[[Path], object] = nothing
    """Fills the folder that the row starts in."""
    code: int = 2
    before: str = ""
    """A regular expression for all that both outputs have before the paragraph; "": nothing."""
    writes: Sequence[str] = ()
    """Globs of files that it may write below the folder; `*` stands for any characters, / too."""
    env: Mapping[str, str] = field(default_factory=dict)
    process: bool = False
    """Start Python anew instead of forking this process."""
    needs: str = ""
    """A module without which the row is skipped."""

    def __post_init__(self) -> None:
        assert bool(self.command) != bool(self.python), f"{self.name}: a command or Python"

    @property
    def program(self) -> str:
        """The first word of the paragraph of a command."""
        return self.command.split()[0] if self.command else ""


@dataclass(frozen=True, kw_only=True)
class Accepted(Refusal):
    """The other side of a bound: a command that is not refused."""

    code: int = 0
    says: str
    """A regular expression for both outputs."""
    writes: Sequence[str] = ("*",)


def refused(name: str, command: str, **more: Any) -> Refusal:
    """Return the row of a command; `more`: further fields of Refusal."""
    return Refusal(name=name, command=command, **more)


def opened(name: str, command: str, *, output: str = "out", **more: Any) -> Refusal:
    """Return the row of a run that has made its folder, and has not yet listed its input."""
    return refused(name, command, writes=(output,), **more)


LISTED = r"^\d+ files, [\d.]+ MB; [^|%]+"
"""The line of a run that has listed its input: the size of the input, and its reader."""


def begun(name: str, command: str, *, output: str = "out", **more: Any) -> Refusal:
    """Return the row of a run that has made its folder, and is refused before it reads a record."""
    return refused(name, command, before=f"{LISTED}$", writes=(output,), **more)


def mapped(name: str, command: str, *, found: str = "", **more: Any) -> Refusal:
    """Return the row of a run that is refused once it has read, and keeps its work in `out/.work`.

    Args:
        name: As of Refusal.
        command: As of Refusal.
        found: Text about records in the last line before.
        more: Further fields of Refusal.
    """
    before = rf"{LISTED}.*{re.escape(found)}( \| \d:\d\d)?$"
    return refused(name, command, before=before, writes=("out", "out/.work*"), **more)


def raised(name: str, python: str, **more: Any) -> Refusal:
    """Return the row of lines of Python that raise an error."""
    return Refusal(name=name, python=python, **more)
