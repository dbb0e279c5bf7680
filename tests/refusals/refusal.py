"""What a row of the table says: a command in a folder, and the paragraph that refuses it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def nothing(folder: Path) -> None:
    """Leave the folder empty."""


Said = str | tuple[str, Callable[[Path], object]]
"""What a table of commands says of one: the paragraph, or that and the scene that it takes."""


def with_scene(said: Said, scene: Callable[[Path], object]) -> tuple[str, Callable[[Path], object]]:
    """Return the paragraph and the scene of a row, which is another one if the row says none."""
    return (said, scene) if isinstance(said, str) else said


def told(text: str) -> str:
    """Return the regular expression of a text as it is, in which … stands for anything."""
    return ".*".join(map(re.escape, text.split("…")))


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A command line, or lines of Python, that is refused."""

    name: str
    """A few words, unique in the table."""
    command: str = ""
    """The module and its words, as a shell has them: `pipelines.wudao --tokeniser x`."""
    python: str = ""
    """Lines of Python instead: what they raise is told as `NAME: message`, with code 2 if it is a
    UserError and 1 if not."""
    says: str
    """A regular expression for the paragraph, which stands on one line, white space folded."""
    scene: Callable[[Path], object] = nothing
    """Fills the folder that the row starts in."""
    code: int = 2
    before: str = ""
    """A regular expression for all that both outputs have before the paragraph; "": nothing."""
    writes: Sequence[str] = ()
    """Globs of what the row may write below the folder; `*` stands for any characters, / too."""
    env: Mapping[str, str] = field(default_factory=dict)
    process: bool = False
    """Start Python anew instead of forking this process."""
    needs: str = ""
    """A module without which the row is skipped."""
    slow: bool = False
    """Whether it takes more than two seconds."""

    def __post_init__(self) -> None:
        assert bool(self.command) != bool(self.python), f"{self.name}: a command or Python"

    @property
    def program(self) -> str:
        """What the paragraph of a command begins with."""
        return self.command.split()[0] if self.command else ""


@dataclass(frozen=True, kw_only=True)
class Accepted(Refusal):
    """The other side of a bound: a command that is not refused."""

    code: int = 0
    says: str = ""
    """A regular expression for what both outputs have."""
    writes: Sequence[str] = ("*",)


def refused(name: str, command: str, says: str, **more: Any) -> Refusal:
    """Return the row of a command whose whole paragraph is a text, as `told` has it.

    Args:
        name: As of Refusal.
        command: As of Refusal.
        says: The paragraph, without the program that it begins with.
        more: Further fields of Refusal.
    """
    program = command.split(maxsplit=1)[0]
    return Refusal(name=name, command=command, says=f"^{told(f'{program}: {says}')}$", **more)


def opened(name: str, command: str, says: str, *, output: str = "out", **more: Any) -> Refusal:
    """Return the row of a run that has made its folder, and has not yet listed its input."""
    return refused(name, command, says, writes=(output,), **more)


LISTED = r"^\d+ files, [\d.]+ MB; [^|%]+"
"""What a run says once it has listed its input: how much there is, and what reads it."""


def begun(name: str, command: str, says: str, *, output: str = "out", **more: Any) -> Refusal:
    """Return the row of a run that has made its folder, and is refused before it reads a record."""
    return refused(name, command, says, before=f"{LISTED}$", writes=(output,), **more)


def mapped(name: str, command: str, says: str, *, found: str = "", **more: Any) -> Refusal:
    """Return the row of a run that is refused once it has read, and keeps its work in `out/.work`.

    Args:
        name: As of `refused`.
        command: As of `refused`.
        says: As of `refused`.
        found: What the last line before has of the records, as `told` has it.
        more: As of `refused`.
    """
    before = rf"{LISTED}.*{told(found)}( \| \d:\d\d)?$"
    return refused(name, command, says, before=before, writes=("out", "out/.work*"), **more)


def raised(name: str, python: str, says: str, **more: Any) -> Refusal:
    """Return the row of lines of Python that raise an error with a text, as `told` has it."""
    return Refusal(name=name, python=python, says=f"^{told(says)}$", **more)
