"""The tasks that are known by name, and those that a file describes."""

from pathlib import Path

from shards.errors import UserError
from shards.spelling import expected
from trainer.json_file import is_file
from trainer.tasks.description import read_description
from trainer.tasks.sequences import SEQUENCES
from trainer.tasks.superglue import READERS
from trainer.tasks.task import Reader, Task

_DESCRIPTIONS = {path.stem: path for path in (Path(__file__).parent / "descriptions").iterdir()}
_READERS = {**READERS, "seq2seq": SEQUENCES, "customization": SEQUENCES}
TASKS = tuple(sorted(_DESCRIPTIONS))
"""The names that are known. The reference calls seq2seq customization."""


def find_task(name: str) -> Task:
    """Return a task.

    Args:
        name: one of TASKS, or the path of a JSON file that describes one.

    Raises:
        UserError: there is none, or the file does not describe one.
    """
    path = _DESCRIPTIONS.get(name, Path(name))
    if not is_file(path):
        raise UserError(
            f"--task {name}: there is no such task, and no such file: {expected(name, TASKS)}, or "
            "FILE.json of one's own."
        )
    reader = _READERS.get(name, Reader())
    return Task(name=path.stem, said=read_description(path), reader=reader)
