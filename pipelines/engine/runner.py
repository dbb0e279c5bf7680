"""Runs the tasks of a phase in a Beam pipeline of one shape, whatever the runner.

Tasks are spread over the workers, and one function runs each of them. Nothing but tasks passes
through Beam, and nothing comes back: a task's results are files, the last of them its record.
"""

import base64
import logging
import multiprocessing
import os
import pickle
import re
import signal
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from pipelines.engine import beam
from pipelines.engine.beam import PBegin, PCollection, PipelineOptions, PipelineResult
from pipelines.engine.cluster import (
    check_engine_answers,
    engine_name,
    put_this_python_first,
    with_processes,
)
from pipelines.engine.workers import Workers
from shards.errors import UserError

RunTask = Callable[[Any], None]
"""Runs one task."""

_ONE_AT_A_TIME = threading.Lock()
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
    """Runs a task with a function that is prepared once per process: models are slow to load.

    Engines may give a process several tasks at once, in threads; these take turns, because the
    function holds buffers and memory for one task.
    """

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def process(self, task: Any) -> None:
        """Run one task; a UserError travels as text, since Beam keeps only that."""
        try:
            with _ONE_AT_A_TIME:
                _run_task_of(self._payload)(task)
        except UserError as error:
            raise _portable_error(error) from error
        except MemoryError as error:
            if multiprocessing.parent_process():  # the driver tries again, in the end alone
                os.kill(os.getpid(), signal.SIGKILL)
            raise _portable_error(
                f"there is not enough memory for the {task}: use a machine with more, or raise "
                "the limit (ulimit -v). Finished work is kept; the same command continues from it"
            ) from error


def _portable_error(message: object) -> RuntimeError:
    """Return an error whose message survives as part of whatever text an engine makes of it."""
    text = base64.b64encode(str(message).encode()).decode()
    return RuntimeError(f"{message} [corpusmill {text}]")


@lru_cache(maxsize=1)
def _run_task_of(payload: bytes) -> RunTask:
    prepare, argument = pickle.loads(payload)
    run_task: RunTask = prepare(argument)
    return run_task


class Runner:
    """Runs tasks where the flags say. As a context manager it ends the workers it started."""

    def __init__(self, flags: Sequence[str], *, num_workers: int) -> None:
        """Make a runner.

        Args:
            flags: Beam's own.
            num_workers: Worker processes on this machine; 0 runs the tasks in this process.

        Raises:
            UserError: The engine does not answer.
        """
        self._local = not engine_name(flags)
        self._flags = tuple(flags if self._local else with_processes(flags))
        if not self._local:
            check_engine_answers(flags)
            put_this_python_first()
        self.num_workers = num_workers if self._local else 0
        self._workers = Workers(self.num_workers, partial(_run_one, self._flags))

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *details: object) -> None:
        self._workers.__exit__(*details)

    def run(self, tasks: Sequence[Any], prepare: Callable[[Any], RunTask], argument: Any) -> None:
        """Run all tasks and return when they are done.

        Args:
            tasks: Small picklable records.
            prepare: A module-level function; prepare(argument) returns the one that runs a task.
            argument: Picklable.

        Raises:
            UserError: A task failed in a way that the user can fix, or its worker kept dying.
        """
        payload = pickle.dumps((prepare, argument))
        if self.num_workers:
            self._workers.run_all(tasks, payload)
        else:
            _run(self._flags, tasks, payload, local=self._local)


def _run_one(flags: Sequence[str], payload: bytes, task: Any) -> None:
    """Run one task in this process, a child of the driver."""
    silence_beam()
    _run(flags, [task], payload, local=True)


def _run(flags: Sequence[str], tasks: Sequence[Any], payload: bytes, *, local: bool) -> None:
    # Beam's DirectRunner would first try to download Prism; this is what it falls back to.
    runner = beam.FnApiRunner() if local else None
    phase = type(tasks[0]).__name__.removesuffix("Task")
    try:
        pipeline = beam.Pipeline(runner=runner, options=_options(flags, phase))
        _ = pipeline | phase >> Tasks(tasks, payload)
        _wait(pipeline.run())
    except Exception as error:
        message = _ENCODED_MESSAGE.search(str(error))
        if message is not None:
            raise UserError(base64.b64decode(message[1]).decode()) from error
        if local:
            raise
        reason = " ".join(str(error).split())[:1000] or type(error).__name__
        raise UserError(
            f"the runner failed: {reason}. Look at its own log. Finished work is kept; the same "
            "command continues from it"
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


def silence_beam() -> None:
    """Keep Beam's own log off the terminal; this package reports a task's error once."""
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
