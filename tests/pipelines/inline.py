"""A runner without Beam, for tests of what runs tasks."""

from collections.abc import Callable, Sequence
from typing import Any

from pipelines.engine.task import RunTask


class InlineRunner:
    """Runs tasks in this process, and lists them."""

    def __init__(self) -> None:
        self.tasks: list[Any] = []

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
