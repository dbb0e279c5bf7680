"""A runner without Beam, for tests of what runs tasks."""

from collections.abc import Callable, Sequence
from typing import Any

from pipelines.corpus.options import Options
from pipelines.engine.task import RunTask
from pipelines.inputs.files import InputFile
from pipelines.map.mapper import Job
from pipelines.map.phase import MapPhase

JobMaker = Callable[[Options], tuple[Job, Sequence[InputFile]]]
PhaseMaker = Callable[..., MapPhase]
"""Of tests/pipelines/map/conftest.py."""


class InlineRunner:
    """Runs tasks in this process, and lists them."""

    def __init__(self) -> None:
        self.tasks: list[Any] = []

    @property
    def ran(self) -> list[str]:
        """The names of the tasks."""
        return [task.name for task in self.tasks]

    def run(
        self,
        tasks: Sequence[Any],
        prepare: Callable[[Any], RunTask],
        argument: Any,
        *,
        phase: str = "",  # noqa: ARG002
    ) -> None:
        run_task = prepare(argument)
        for task in tasks:
            self.tasks.append(task)
            run_task(task)
