"""A row of the golden table: commands on a small corpus whose results are pinned."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command of a row."""

    words: str
    """The words after `python -m`. If the first word ends in .py, it is a script in the row's
    folder."""
    code: int = 0
    """The expected exit code."""
    ranks: int = 1
    """The number of processes, which find each other by torch's environment variables."""
    prepare: Callable[[Path], None] | None = None
    """A function that adds or changes files in the row's folder before the command."""
    pins_output: bool = True
    """Whether the lines that the command prints are pinned."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """Commands that run in one folder, and the files that the folder has at the start."""

    name: str
    about: str
    """The behaviour that the row pins."""
    commands: Sequence[str | Command]
    setup: Sequence[Callable[[Path], None]] = ()
    """Functions that write files into the row's folder before the first command."""
    starts_from: str = ""
    """The name of a row that runs first; this row starts in a copy of that row's folder."""
    fast: bool = False
    """Whether the row also belongs to the fast tests."""
    pinned_files: Sequence[str] = ()
    """Patterns of further files to pin: short texts in full, all others by their hashes."""
    requires: Sequence[str] = ()
    """Modules of optional libraries; the row is skipped if one is missing."""
