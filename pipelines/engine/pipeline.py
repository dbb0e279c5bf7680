"""A Beam pipeline of one shape runs the tasks of a phase, whatever the runner.

Tasks are spread over the workers, and one function runs each of them. Nothing but tasks passes
through Beam, and nothing comes back: a task's results are files, the last of them its record.
"""

import base64
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.engine import beam
from pipelines.engine.beam import PBegin, PCollection, PipelineOptions, PipelineResult
from pipelines.engine.failure import one_line
from pipelines.engine.task import run_packed
from shards.errors import UserError

_ENCODED_MESSAGE = re.compile(r"\[corpusmill ([A-Za-z0-9+/=]+)\]")


@dataclass
class Tasks(beam.PTransform[PBegin, PCollection[Any]]):
    """Run each task once, with the function that the payload's `prepare` returns in each worker."""

    tasks: Sequence[Any]
    payload: bytes

    def expand(self, pipeline: PBegin) -> PCollection[Any]:
        """Wire it; without Reshuffle Beam would run all tasks in the worker that creates them."""
        tasks = pipeline | "Create" >> beam.Create(self.tasks, reshuffle=False)
        if len(self.tasks) > 1:
            tasks |= "Spread" >> beam.Reshuffle()
        done: PCollection[Any] = tasks | "Run" >> beam.ParDo(TaskDoFn(self.payload))
        return done


class TaskDoFn(beam.DoFn):
    """Runs a task; a UserError travels as text, since Beam keeps only that."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def process(self, task: Any) -> None:
        """Run one task."""
        try:
            run_packed(self._payload, task)
        except UserError as error:
            text = base64.b64encode(str(error).encode()).decode()
            # It survives as part of whatever text an engine makes of the error.
            raise RuntimeError(f"{error} [corpusmill {text}]") from error


def run_pipeline(
    flags: Sequence[str], tasks: Sequence[Any], payload: bytes, *, in_process: bool
) -> None:
    """Run all tasks and return when they are done.

    Args:
        flags: Beam's own.
        tasks: Small picklable records.
        payload: What `packed` returns.
        in_process: Run them in this process, by the runner that Beam itself brings.

    Raises:
        UserError: A task raised it, or the engine failed.
    """
    # Beam's DirectRunner would first try to download Prism; this is what it falls back to.
    runner = beam.FnApiRunner() if in_process else None
    phase = type(tasks[0]).__name__.removesuffix("Task")
    try:
        pipeline = beam.Pipeline(runner=runner, options=_options(flags, phase))
        _ = pipeline | phase >> Tasks(tasks, payload)
        _wait(pipeline.run())
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


def _options(flags: Sequence[str], phase: str) -> PipelineOptions:
    """Return Beam's options; without --job_name the engine shows the phase as the job's name."""
    options = PipelineOptions([*flags])
    job = options.view_as(beam.GoogleCloudOptions)
    job.job_name = job.job_name or f"corpusmill-{phase.lower()}-{uuid.uuid4().hex[:8]}"
    return options


def _wait(result: PipelineResult) -> None:
    """Wait for a job to end; if the driver is interrupted, ask the engine to cancel the job."""
    try:
        result.wait_until_finish()
    except KeyboardInterrupt:
        result.cancel()
        raise
