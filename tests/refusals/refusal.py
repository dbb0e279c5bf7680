"""A row of the table: a command in a folder, and the message that refuses it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def no_files(folder: Path) -> None:
    """Leave the folder empty."""


def text_pattern(text: str) -> str:
    """Return a regular expression for a whole text, in which … stands for any text."""
    return f"^{'.*'.join(map(re.escape, text.split('…')))}$"


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A command line, or lines of Python, that is refused."""

    name: str
    """A short name that is unique in the table."""
    command: str = ""
    """The module and its arguments, written as in a shell: `pipelines.wudao --tokeniser x`."""
    python: str = ""
    """Lines of Python to run instead of a command. Their error is printed as `NAME: message`, and
    the exit code is 2 for a UserError, 1 for any other error."""
    message: str = ""
    """A regular expression for the message, joined to one line with single spaces; if it is "", the
    text in `messages/` is used."""
    setup: Callable[[Path], object] = no_files
    """A function that fills the folder in which the command runs."""
    code: int = 2
    output_before: str = ""
    """A regular expression for the output before the message; "" if there is none."""
    may_write: Sequence[str] = ()
    """Patterns of the files in the folder that the command may write; `*` also matches /."""
    env: Mapping[str, str] = field(default_factory=dict)
    new_process: bool = False
    """Whether to start a new Python instead of a fork."""
    requires: str = ""
    """The name of an optional module; the row is skipped if the module is missing."""

    def __post_init__(self) -> None:
        assert bool(self.command) != bool(self.python), f"{self.name}: a command or Python"

    @property
    def program(self) -> str:
        """The program's name, with which the messages of the command begin."""
        return self.command.split()[0] if self.command else ""


@dataclass(frozen=True, kw_only=True)
class Accepted(Refusal):
    """A command with a value on the accepted side of a bound."""

    code: int = 0
    message: str
    """A regular expression for the output."""
    may_write: Sequence[str] = ("*",)


def refused(name: str, command: str, **more: Any) -> Refusal:
    """Return the row of a command; `more` has the remaining fields of Refusal."""
    return Refusal(name=name, command=command, **more)


def at_start(name: str, command: str, *, output: str = "out", **more: Any) -> Refusal:
    """Return the row of a run that is refused after making a folder, before listing inputs."""
    return refused(name, command, may_write=(output,), **more)


LISTED = r"^(?:1 file|(?!1 )\d+ files), [\d.]+ MB; [^|%]+"
"""The log line of a run that has listed its input: the input's size, and the reader."""


def after_listing(name: str, command: str, *, output: str = "out", **more: Any) -> Refusal:
    """Return the row of a run that is refused after listing its inputs, before reading any."""
    return refused(name, command, output_before=f"{LISTED}$", may_write=(output,), **more)


def after_reading(name: str, command: str, *, found: str = "", **more: Any) -> Refusal:
    """Return the row of a run that is refused after reading, and keeps its work in `out/.work`.

    Args:
        name: The name of the row.
        command: The command of the row.
        found: The log line's numbers of records, which precede the message.
        more: The remaining fields of Refusal.
    """
    output_before = rf"{LISTED}.*{re.escape(found)}( \| \d:\d\d)?$"
    return refused(
        name, command, output_before=output_before, may_write=("out", "out/.work*"), **more
    )


def in_python(name: str, python: str, **more: Any) -> Refusal:
    """Return a row with lines of Python that raise an error."""
    return Refusal(name=name, python=python, **more)
