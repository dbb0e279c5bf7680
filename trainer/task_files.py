"""Files of benchmarks as a command line names them, read before torch is loaded."""

from collections.abc import Sequence
from pathlib import Path

from shards.errors import UserError

MASK, GMASK = "mask", "gmask"
BATCH_TOKENS = 8192
"""Of a batch, with its padding, unless a row alone is longer."""


def parse_tasks(flag: str, texts: Sequence[str]) -> dict[str, Path]:
    """Return the files of benchmarks by name.

    Args:
        flag: what the user gave them with.
        texts: NAME=FILE.

    Raises:
        UserError: a text is none, there is no such file, or a name is given twice.
    """
    files: dict[str, Path] = {}
    for text in texts:
        name, _, file = text.partition("=")
        if not name or not file:
            raise UserError(f"{flag} {text}: give NAME=FILE, a task and the file of its items.")
        if name in files:
            raise UserError(f"{flag} {text}: {name} is there already, with {files[name]}.")
        if not Path(file).is_file():
            raise UserError(f"{flag} {text}: there is no file {file}.")
        files[name] = Path(file)
    return files
