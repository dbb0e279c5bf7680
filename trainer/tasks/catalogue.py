"""The tasks that are known by name, and those that a file describes."""

from shards.errors import UserError
from trainer.tasks.task import Task

TASKS: dict[str, Task] = {}
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
    raise UserError(
        f"--task {name}: there is no such task, and no such file. Known are "
        f"{', '.join(sorted(TASKS))}; a task of one's own is a JSON file."
    )
