"""Writes users' modules, and an installed package with entry points."""

import importlib
import sys
from pathlib import Path

from pipelines.corpus.code import code_hash

MODULES = ("mine", "notes_of_mine", "rules", "own_filters", "own_rules")


def forget() -> None:
    """Make this process import the modules again, as a new process would."""
    for name in [name for name in sys.modules if name.partition(".")[0] in MODULES]:
        del sys.modules[name]
    importlib.invalidate_caches()
    code_hash.cache_clear()


def install(folder: Path, entry_points: str) -> None:
    """Write to a folder the metadata of an installed package that has entry points."""
    about = folder / "mine-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(entry_points)
