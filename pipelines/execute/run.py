"""Runs a pipeline to its end, in this process or on an engine, and restores its errors.

Beam turns an error in a DoFn into a RuntimeError, and an engine keeps only the error's text. So if
the driver runs the job's code, it keeps the original error; otherwise the error travels as text.
"""

import base64
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from pipelines.execute import beam
from pipelines.execute.job_store import JobStore
from pipelines.execute.jobs import named_options, named_runner
from pipelines.execute.loopback import report_errors_once
from pipelines.execute.progress import show_progress
from pipelines.execute.runner import Runner
from shards.errors import DamageError, UserError


class LocalRun:
    """A job that runs completely in this process."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.error: BaseException | None = None


_LOCAL = "local"
"""The name of the LocalRun in the store of a job that runs in this process."""

_ENCODED = re.compile(r"\[corpusmill ([A-Za-z0-9+/=]+)\]")
_TYPES: dict[str, type[UserError]] = {"UserError": UserError, "DamageError": DamageError}


def local_run(store: JobStore) -> LocalRun | None:
    """Return the run of a job in this process; None if an engine runs the job."""
    local: LocalRun | None = store.get(_LOCAL) if store.is_local else None
    return local


@contextmanager
def report_errors(store: JobStore, *, to_driver: bool) -> Iterator[None]:
    """Pass an error of the block to the driver, although Beam changes errors on the way.

    Args:
        store: The shared values of the job.
        to_driver: Whether a command of this package runs the job and reads such errors.
    """
    try:
        yield
    except BaseException as error:
        if local := local_run(store):
            local.error = error
        elif isinstance(error, UserError) and to_driver:
            kind = "DamageError" if isinstance(error, DamageError) else "UserError"
            text = base64.b64encode(f"{kind} {error}".encode()).decode()
            raise RuntimeError(f"{error} [corpusmill {text}]") from error
        raise


def new_pipeline(runner: Runner, dataset: str) -> beam.Pipeline:
    """Return an empty pipeline for the runner that a command names.

    Args:
        runner: The runner, with the flags for Beam.
        dataset: The name of the dataset, from which the job's name is made.
    """
    options = named_options(runner.flags, dataset)
    beam_runner = beam.FnApiRunner() if runner.local else named_runner(options)
    return beam.Pipeline(runner=beam_runner, options=options)


def run_pipeline(
    pipeline: beam.Pipeline, store: JobStore, runner: Runner, stages: Sequence[str]
) -> None:
    """Run a job to its end, showing progress.

    Args:
        pipeline: The job, made by `new_pipeline`.
        store: The shared values of the job.
        runner: The runner that the job runs on.
        stages: The names of the job's stages, in order.

    Raises:
        UserError: A part of the job raised it, or the engine failed.
    """
    if not runner.local:
        with show_progress(store, stages):
            _run_on_engine(pipeline)
        return
    local = LocalRun(runner)
    store.put(_LOCAL, local)
    try:
        with _ctrl_c_kept(local):
            pipeline.run().wait_until_finish()
    except Exception:
        if local.error is None:
            raise
        raise local.error from None


def _run_on_engine(pipeline: beam.Pipeline) -> None:
    result = None
    report_errors_once()  # Prism's workers may be threads in this process
    try:
        result = pipeline.run()
        result.wait_until_finish()
    except KeyboardInterrupt:
        if result is not None:
            result.cancel()
        raise
    except Exception as error:
        message = _ENCODED.search(str(error))
        if message is not None:
            kind, _, text = base64.b64decode(message[1]).decode().partition(" ")
            raise _TYPES[kind](text) from error
        raise UserError(
            f"the runner failed: {_one_line(error, 1000)}. Look at its own log. Finished work is "
            "kept; the same command continues from it"
        ) from error


@contextmanager
def _ctrl_c_kept(local: LocalRun) -> Iterator[None]:
    """Record a Ctrl-C in the block as the job's error; Beam would turn it into a RuntimeError."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # a watch handles Ctrl-C in its own way
        yield
        return

    def interrupted(*_: int | FrameType | None) -> None:
        local.error = KeyboardInterrupt()
        raise local.error

    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _one_line(error: BaseException, characters: int) -> str:
    """Return an error's text on one line of at most `characters`; a longer text loses its middle.

    An engine wraps the text of a failed item in its own text, frame by frame: the start names the
    failed step, and the end gives the cause.
    """
    text = " ".join(str(error).split()) or type(error).__name__
    if len(text) <= characters:
        return text
    start = characters // 3
    return f"{text[:start]} … {text[start + 3 - characters :]}"
