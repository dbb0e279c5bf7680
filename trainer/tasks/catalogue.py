"""Finds tasks by name, or by the path of a file that describes a task."""

from collections.abc import Mapping
from pathlib import Path

from shards.commands.spelling import expected
from shards.errors import UserError
from trainer.json_file import is_file
from trainer.tasks.choices import ChoiceTask
from trainer.tasks.description import read_description
from trainer.tasks.superglue import Copa, MultiRC, ReCoRD, Wsc
from trainer.tasks.task import Task
from trainer.tasks.texts import SequenceTask, TextTask

_DESCRIPTIONS = {path.stem: path for path in (Path(__file__).parent / "descriptions").iterdir()}
_KINDS: Mapping[str, type[Task]] = {
    "copa": Copa,
    "multirc": MultiRC,
    "record": ReCoRD,
    "wsc": Wsc,
    "seq2seq": SequenceTask,
    "customization": SequenceTask,
}
TASKS = tuple(sorted(_DESCRIPTIONS))
"""The names of the built-in tasks. THUDM/GLM calls seq2seq customization."""


def find_task(name: str) -> Task:
    """Return the task that has this name or that this file describes.

    Args:
        name: one of TASKS, or the path of a JSON file that describes a task.

    Raises:
        UserError: there is no such task, or the file does not describe a task.
    """
    path = _DESCRIPTIONS.get(name, Path(name))
    if not is_file(path):
        raise UserError(
            f"--task {name}: there is no such task, and no such file: {expected(name, TASKS)}, or "
            "FILE.json with your own."
        )
    description = read_description(path)
    kind = _KINDS.get(name, TextTask if description.answer is not None else ChoiceTask)
    return kind(name=path.stem, description=description)
