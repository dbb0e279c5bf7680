"""The tasks that are known by name, and those that a file describes."""

from pathlib import Path

from shards.errors import UserError
from shards.spelling import expected
from trainer.json_file import is_file
from trainer.tasks.clue import CLUE
from trainer.tasks.own import PROMPTED, read_task
from trainer.tasks.sequences import SEQUENCES
from trainer.tasks.superglue.boolq import BOOLQ
from trainer.tasks.superglue.copa import COPA
from trainer.tasks.superglue.entailment import CB, RTE
from trainer.tasks.superglue.multirc import MULTIRC
from trainer.tasks.superglue.record import RECORD
from trainer.tasks.superglue.wic import WIC
from trainer.tasks.superglue.wsc import WSC
from trainer.tasks.task import Task

_ALL = (COPA, BOOLQ, CB, RTE, WIC, WSC, MULTIRC, RECORD, *CLUE, *SEQUENCES, PROMPTED)

TASKS = {task.name: task for task in _ALL}
"""By name."""


def find_task(name: str) -> Task:
    """Return a task.

    Args:
        name: one of TASKS, or the path of a JSON file that describes one.

    Raises:
        UserError: there is none, or the file does not describe one.
    """
    if name in TASKS:
        return TASKS[name]
    if is_file(Path(name)):
        return read_task(Path(name))
    raise UserError(
        f"--task {name}: there is no such task, and no such file: "
        f"{expected(name, sorted(TASKS))}, or FILE.json of one's own."
    )
