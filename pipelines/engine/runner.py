"""Where the tasks of a phase run: in a Beam pipeline of one shape, whatever the runner.

Task records are spread over the workers and each is run by one function. Nothing but tasks crosses
Beam, and nothing comes back: a task's results are files, its record the last of them.
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
from pipelines.engine.cluster import check_answers, engine, lead_path_here, with_processes
from pipelines.engine.workers import Workers
from shards.errors import UserError

Work = Callable[[Any], None]
"""Does one task."""

_ONE_AT_A_TIME = threading.Lock()
_MARK = re.compile(r"\[corpusmill ([A-Za-z0-9+/=]+)\]")


@dataclass
class Tasks(beam.PTransform[PBegin, PCollection[Any]]):
    """Run each task once, by the function that the payload's `prepare` makes in each worker."""

    tasks: Sequence[Any]
    payload: bytes

    def expand(self, pipeline: PBegin) -> PCollection[Any]:
        """Wire it; Reshuffle keeps Beam from fusing all tasks into the worker that creates them."""
        tasks = pipeline | "Create" >> beam.Create(self.tasks, reshuffle=False)
        if len(self.tasks) > 1:
            tasks |= "Spread" >> beam.Reshuffle()
        done: PCollection[Any] = tasks | "Run" >> beam.ParDo(RunTask(self.payload))
        return done


class RunTask(beam.DoFn):
    """Runs a task by a function that is prepared once per process: models are slow to load.

    Engines may give a process several tasks at once, in threads; they take turns, since what is
    prepared holds buffers and the memory of one task.
    """

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def process(self, task: Any) -> None:
        """Do one task; what a person can mend travels as text, since Beam keeps only that."""
        try:
            with _ONE_AT_A_TIME:
                _prepared(self._payload)(task)
        except UserError as error:
            raise _carried(error) from error
        except MemoryError as error:
            if multiprocessing.parent_process():  # the driver tries again, at last alone
                os.kill(os.getpid(), signal.SIGKILL)
            raise _carried(
                f"there is not enough memory for the {task}: use a machine with more, or raise "
                "the limit (ulimit -v). Finished work is kept; the same command goes on from there"
            ) from error


def _carried(message: object) -> RuntimeError:
    text = base64.b64encode(str(message).encode()).decode()
    return RuntimeError(f"{message} [corpusmill {text}]")


@lru_cache(maxsize=1)
def _prepared(payload: bytes) -> Work:
    prepare, argument = pickle.loads(payload)
    work: Work = prepare(argument)
    return work


class Runner:
    """Runs tasks where the flags say. Use it as a context: it ends the workers that it started."""

    def __init__(self, flags: Sequence[str], *, num_workers: int) -> None:
        """Make a runner.

        Args:
            flags: Beam's own.
            num_workers: Processes of the DirectRunner; 0 does without any beside this one.

        Raises:
            UserError: The engine does not answer.
        """
        self._local = not engine(flags)
        self._flags = tuple(flags if self._local else with_processes(flags))
        if not self._local:
            check_answers(flags)
            lead_path_here()
        self.num_workers = num_workers if self._local else 0
        self._workers = Workers(self.num_workers, partial(_run_one, self._flags))

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *details: object) -> None:
        self._workers.__exit__(*details)

    def run(self, tasks: Sequence[Any], prepare: Callable[[Any], Work], argument: Any) -> None:
        """Run all tasks and return when they are done.

        Args:
            tasks: Small picklable records.
            prepare: prepare(argument) makes the function that runs a task; a module holds it.
            argument: Picklable.

        Raises:
            UserError: A task failed in a way that a person can mend, or its worker kept dying.
        """
        payload = pickle.dumps((prepare, argument))
        if self.num_workers:
            self._workers.run_all(tasks, payload)
        else:
            _run(self._flags, tasks, payload, local=self._local)


def _run_one(flags: Sequence[str], payload: bytes, task: Any) -> None:
    """Run one task in this process, a child of the driver."""
    hush()
    _run(flags, [task], payload, local=True)


def _run(flags: Sequence[str], tasks: Sequence[Any], payload: bytes, *, local: bool) -> None:
    # By name, Beam's DirectRunner would first try to download Prism; this is what it falls back to.
    runner = beam.FnApiRunner() if local else None
    phase = type(tasks[0]).__name__.removesuffix("Task")
    try:
        pipeline = beam.Pipeline(runner=runner, options=_options(flags, phase))
        _ = pipeline | phase >> Tasks(tasks, payload)
        _wait(pipeline.run())
    except Exception as error:
        carried = _MARK.search(str(error))
        if carried is not None:
            raise UserError(base64.b64decode(carried[1]).decode()) from error
        if local:
            raise
        reason = " ".join(str(error).split())[:1000] or type(error).__name__
        raise UserError(
            f"the runner failed: {reason}. Look at its own log; what is finished is kept, and the "
            "same command goes on from there"
        ) from error


def _options(flags: Sequence[str], phase: str) -> PipelineOptions:
    """Return Beam's options; the engine shows the phase as the job's name, unless one was given."""
    options = PipelineOptions([*flags])
    named = options.view_as(beam.GoogleCloudOptions)
    named.job_name = named.job_name or f"corpusmill-{phase.lower()}-{uuid.uuid4().hex[:8]}"
    return options


def _wait(result: PipelineResult) -> None:
    """Wait for a job to end; when a person stops the driver, the engine is asked to cancel it."""
    try:
        result.wait_until_finish()
    except KeyboardInterrupt:
        result.cancel()
        raise


def hush() -> None:
    """Keep Beam's own chatter off the terminal; a task's error is told once, by us."""
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
