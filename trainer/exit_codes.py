"""The exit codes of a machine's ranks, left in a folder for a launcher that forgets them.

torchrun, asked to stop, waits for its ranks and does not tell how they ended.
"""

import os
from pathlib import Path

FOLDER = "TRAINER_EXIT_CODES"
"""The environment variable that names the folder."""


def leave_code(code: int) -> None:
    """Leave this rank's exit code, if a launcher asks for it."""
    folder = os.environ.get(FOLDER)
    if folder is not None:
        (Path(folder) / os.environ.get("RANK", "0")).write_text(str(code))


def codes_left(folder: Path) -> list[int]:
    """Return the exit codes that ranks have left, by rank."""
    return [int(path.read_text()) for path in sorted(folder.iterdir(), key=lambda p: int(p.name))]
