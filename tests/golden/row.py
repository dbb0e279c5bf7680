"""A row of the golden table: commands on a small corpus whose results are pinned."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command of a row."""

    words: str
    """The words after `python -m`. A first word that ends in .py is a script in the folder."""
    code: int = 0
    """The exit code that is expected."""
    ranks: int = 1
    """The number of processes; they find each other by torch's environment variables."""
    prepare: Callable[[Path], None] | None = None
    """A function that adds or changes files in the row's folder before the command."""
    pins_output: bool = True
    """Whether the printed lines are pinned."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """Commands in one folder, with the files that they start from."""

    name: str
    about: str
    """The behaviour that the row pins."""
    commands: Sequence[str | Command]
    setup: Sequence[Callable[[Path], None]] = ()
    """Functions that write files into the row's folder before the first command."""
    starts_from: str = ""
    """The name of a row; this one starts in a copy of its finished folder."""
    fast: bool = False
    """Whether the row is one of the fast tests, too."""
    pinned_files: Sequence[str] = ()
    """Patterns of other files to pin: the content of short texts, the hashes of other files."""
    requires: Sequence[str] = ()
    """Modules of optional libraries; the row is skipped if one is missing."""
