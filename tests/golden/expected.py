"""The figures that every row must give: one file per row."""

import json
from pathlib import Path

from tests.golden.outcome import written

_FOLDER = Path(__file__).parent / "figures"


def figures(name: str) -> dict:
    """The figures that the row must give; nothing if it is new."""
    path = _FOLDER / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def update(name: str, found: dict) -> None:
    """Make what was found what the row must give."""
    _FOLDER.mkdir(exist_ok=True)
    (_FOLDER / f"{name}.json").write_text(written(found) + "\n", "utf-8")
