"""The tasks that are known by name, and those that a file describes."""

from dataclasses import replace
from pathlib import Path

from shards.errors import UserError
from shards.spelling import expected
from trainer.json_file import is_file
from trainer.tasks.description import read_task
from trainer.tasks.sequences import SEQ2SEQ
from trainer.tasks.superglue import READERS
from trainer.tasks.task import Task

_DESCRIPTIONS = {path.stem: path for path in (Path(__file__).parent / "descriptions").iterdir()}
_WRITTEN = {"seq2seq": SEQ2SEQ, "customization": replace(SEQ2SEQ, name="customization")}
"""The reference calls it customization."""
TASKS = tuple(sorted([*_DESCRIPTIONS, *_WRITTEN]))
"""The names that are known."""


def find_task(name: str) -> Task:
    """Return a task.

    Args:
        name: one of TASKS, or the path of a JSON file that describes one.

    Raises:
        UserError: there is none, or the file does not describe one.
    """
    if name in _WRITTEN:
        return _WRITTEN[name]
    if name in _DESCRIPTIONS:
        return read_task(_DESCRIPTIONS[name], reader=READERS.get(name))
    if is_file(Path(name)):
        return read_task(Path(name))
    raise UserError(
        f"--task {name}: there is no such task, and no such file: {expected(name, TASKS)}, or "
        "FILE.json of one's own."
    )
