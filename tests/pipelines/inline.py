"""A runner without Beam, for tests of what runs tasks."""

from collections.abc import Callable, Sequence
from typing import Any

from pipelines.engine.task import RunTask


class InlineRunner:
    """Runs tasks in this process."""

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
            run_task(task)
