"""A row of the golden table: commands on a small corpus, to be pinned whole."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Command:
    words: str
    """As in `python -m WORDS`; a first word that ends in .py is a script in the row's folder."""
    code: int = 0
    ranks: int = 1
    """More than one: as many processes, which find each other by torch's variables."""
    files: Callable[[Path], None] | None = None
    """Called with the row's folder before the command: adds a day's files, or edits some."""
    prints: bool = True
    """Whether what it prints is pinned."""


@dataclass(frozen=True, kw_only=True)
class Row:
    name: str
    about: str
    """The behaviour that it pins, in a sentence."""
    commands: Sequence[str | Command]
    corpora: Sequence[Callable[[Path], None]] = ()
    """Each writes files into the row's folder before the first command."""
    after: str = ""
    """The row starts with a copy of that row's finished folder."""
    fast: bool = False
    """It is one of the fast tests, too."""
    keeps: Sequence[str] = ()
    """Globs of other files that are pinned: short texts whole, others by their hash."""
    needs: Sequence[str] = ()
    """Modules of optional libraries, without which it is skipped."""
