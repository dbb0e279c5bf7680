"""Reads and writes the pinned results of the golden rows, one file per row."""

import json
from pathlib import Path

from tests.golden.outcome import to_json

_FOLDER = Path(__file__).parent / "figures"


def figures(name: str) -> dict:
    """Return the pinned results of a row; {} for a new row."""
    path = _FOLDER / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def update(name: str, found: dict) -> None:
    """Write the new results of a row."""
    _FOLDER.mkdir(exist_ok=True)
    (_FOLDER / f"{name}.json").write_text(to_json(found) + "\n", "utf-8")
