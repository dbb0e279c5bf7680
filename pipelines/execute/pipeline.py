"""A Beam pipeline of one shape runs the tasks of a phase, whatever the runner.

Tasks are spread over the workers, and one function runs each of them. Nothing but tasks passes
through Beam, and nothing comes back but metrics, for people to look at: a task's results are files,
the last of them its record.
"""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.execute import beam
from pipelines.execute.beam import PipelineResult
from pipelines.execute.failure import one_line
from pipelines.execute.figures import NAMESPACE, figures
from pipelines.execute.jobs import named_options, named_runner
from pipelines.execute.task import run_packed
from shards.errors import UserError
from shards.storage.files import read_json

_ENCODED_MESSAGE = re.compile(r"\[corpusmill ([A-Za-z0-9+/=]+)\]")
_STEPS = {
    "map": "Map splits",
    "dedup": "Find duplicates",
    "known": "Compare with earlier generations",
    "drops": "List what to drop",
    "slots": "Write signatures",
    "ranges": "Cut segments into ranges",
    "merge": "Merge shards",
}
"""What an engine's pages call the step that runs the tasks, by phase."""


@dataclass(frozen=True)
class Phase:
    """What an engine's pages say of the tasks."""

    name: str
    dataset: str = ""

    @property
    def step(self) -> str:
        """The name of the step that runs them."""
        return _STEPS.get(self.name, f"Run {self.name}")


class TaskDoFn(beam.DoFn):
    """Runs a task and counts what it did, with the function that `prepare` returns in each worker.

    An engine forgets what an attempt counted that did not come to its end, and hands out its tasks
    again: so what a record tells is counted by the attempt that does, whichever one wrote it. A
    UserError travels as text, since Beam keeps only that.
    """

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def process(self, task: Any) -> None:
        """Run one task."""
        try:
            record = run_packed(self._payload, task)
            if record is not None:
                for name, number in figures(record.parent.name, read_json(record)).items():
                    beam.Metrics.counter(NAMESPACE, name).inc(number)
        except UserError as error:
            text = base64.b64encode(str(error).encode()).decode()
            # It survives as part of whatever text an engine makes of the error.
            raise RuntimeError(f"{error} [corpusmill {text}]") from error


def run_pipeline(
    flags: Sequence[str], tasks: Sequence[Any], payload: bytes, *, phase: Phase, in_process: bool
) -> PipelineResult:
    """Run all tasks and return when they are done.

    Args:
        flags: Beam's own.
        tasks: Small picklable records.
        payload: What `packed` returns.
        phase: For the engine's pages.
        in_process: Run them in this process, by the runner that Beam itself brings.

    Returns:
        The job, which has the metrics.

    Raises:
        UserError: A task raised it, or the engine failed.
    """
    try:
        options = named_options(flags, phase.dataset, phase.name)
        # Beam's DirectRunner would first try to download Prism; this is what it falls back to.
        runner = beam.FnApiRunner() if in_process else named_runner(options)
        pipeline = beam.Pipeline(runner=runner, options=options)
        spread = pipeline | "List tasks" >> beam.Create(tasks, reshuffle=False)
        if len(tasks) > 1:
            # Without it Beam would run all tasks in the worker that lists them.
            spread |= "Spread over workers" >> beam.Reshuffle()
        _ = spread | phase.step >> beam.ParDo(TaskDoFn(payload))
        return _finished(pipeline.run())
    except Exception as error:
        message = _ENCODED_MESSAGE.search(str(error))
        if message is not None:
            raise UserError(base64.b64decode(message[1]).decode()) from error
        if in_process:
            raise
        raise UserError(
            f"the runner failed: {one_line(error, 1000)}. Look at its own log. Finished work is "
            "kept; the same command continues from it"
        ) from error


def _finished(result: PipelineResult) -> PipelineResult:
    """Wait for a job to end; if the driver is interrupted, ask the engine to cancel the job."""
    try:
        result.wait_until_finish()
    except KeyboardInterrupt:
        result.cancel()
        raise
    return result
