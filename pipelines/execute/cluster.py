"""Flags for engines other than this machine's own workers, and checks before a run on an engine.

The user's flags go to Beam unchanged. For Flink and Spark, missing flags are added.
"""

import os
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from pipelines.execute.beam import (
    FlinkRunnerOptions,
    PipelineOptions,
    PortableOptions,
    StandardOptions,
)
from pipelines.execute.runner_name import with_runner_spelled
from shards.commands.command import Parser
from shards.commands.spelling import expected
from shards.errors import UserError

ANSWER_SECONDS = 10.0
"""How long an engine may take to accept a connection, in seconds."""

_FLINK = {"FlinkRunner", "PortableRunner"}
_CACHING = {*_FLINK, "SparkRunner"}
_CACHED_MILLIS = 60_000
"""How long a Python worker waits for the next step, in milliseconds."""


def runner_name(flags: Sequence[str]) -> str:
    """Return the name of the runner in the flags, without its module; "" if there is none."""
    return (PipelineOptions([*flags]).view_as(StandardOptions).runner or "").rpartition(".")[2]


def with_defaults(flags: Sequence[str]) -> list[str]:
    """Return the flags, plus the flags that a job with several stages needs on Flink and Spark.

    `environment_cache_millis`: If this flag is missing, Spark starts new Python workers for every
    step.

    `execution_mode_for_batch`: In Flink's pipelined mode one process does nearly all items of a
    stage, since the stage's plan hands them out before any other process is waiting.

    `sdk_worker_parallelism`: The number of processes that one Flink TaskManager may start. The
    TaskManager starts a process when a step of a slot requests one, and assigns processes in turn.
    By default one process serves all slots of a machine, which leaves all cores but one idle. If
    the environment is LOOPBACK, workers are children of the driver, as many as the engine requests.
    """
    runner = runner_name(flags)
    added: dict[str, object] = {}
    if runner in _CACHING:
        added["environment_cache_millis"] = _CACHED_MILLIS
    if runner in _FLINK:
        slots = PipelineOptions([*flags]).view_as(FlinkRunnerOptions).parallelism
        added["execution_mode_for_batch"] = "BATCH_FORCED"
        added["sdk_worker_parallelism"] = 2 * (slots if slots > 0 else os.cpu_count() or 1)
    given = {flag.partition("=")[0] for flag in flags}
    new = [f"--{name}={value}" for name, value in added.items() if f"--{name}" not in given]
    return [*flags, *new]


def check_engine_answers(flags: Sequence[str]) -> None:
    """Check that something listens at the address that the flags give for the engine.

    Raises:
        UserError: Nothing listens there; the check takes at most ANSWER_SECONDS.
    """
    options = PipelineOptions([*flags])
    endpoint = options.view_as(PortableOptions).job_endpoint
    master = options.view_as(FlinkRunnerOptions).flink_master
    if endpoint and endpoint != "embed":
        _connect("--job_endpoint", endpoint, "a job server of Beam (HOST:PORT)")
    elif runner_name(flags) == "FlinkRunner" and not master.startswith("["):
        _connect("--flink_master", master, "the REST address of Flink's JobManager (HOST:PORT)")


def _connect(flag: str, address: str, expected: str) -> None:
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        if not parts.hostname or not port:
            raise ValueError("host or port is missing")
        socket.create_connection((parts.hostname, port), timeout=ANSWER_SECONDS).close()
    except (OSError, ValueError) as error:
        raise UserError(
            f"{flag} {address} does not answer ({error}). It should be {expected}: start it, or "
            "give the address where it runs. Nothing was started; what earlier runs finished is "
            "kept"
        ) from error


def known_flags(words: Sequence[str]) -> list[str]:
    """Return Beam's flags from the words of a command line that are not flags of the corpus.

    Args:
        words: Flags of Beam's Python SDK, then `--` and the flags that only the runner knows.

    Raises:
        UserError: Beam's Python SDK does not know one of the flags before `--`.
    """
    end = words.index("--") if "--" in words else len(words)
    flags = with_runner_spelled(words[:end], StandardOptions.KNOWN_RUNNER_NAMES)
    unknown = beam_parser().parse_known_args(flags)[1]
    if unknown and not unknown[0].startswith("-"):
        raise UserError(
            f"{unknown[0]} belongs to no flag: an input goes after --input, or before all flags; a "
            "value with spaces goes in quotes"
        )
    if unknown:
        raise UserError(
            f"unknown flag {unknown[0]}: neither this command nor Beam's Python SDK has it. "
            "Flags that only the runner knows go after --, as in: -- --checkpointing_interval=5000"
        )
    _check_runner(flags)
    if any(flag.partition("=")[0] == "--direct_num_workers" for flag in flags):
        raise UserError(
            "--direct_num_workers is not read: --workers N sets how many processes of this machine "
            "do the work"
        )
    return [*flags, *words[end + 1 :]]


def _check_runner(flags: Sequence[str]) -> None:
    """Check that Beam knows the runner, which may be named with or without its module."""
    name = PipelineOptions([*flags]).view_as(StandardOptions).runner or ""
    known = StandardOptions.KNOWN_RUNNER_NAMES
    if name and "." not in name and name not in known:
        raise UserError(f"--runner {name}: {expected(name, known)}, or your own MODULE.CLASS")


def beam_parser() -> Parser:
    """Return a parser of all flags of Beam's Python SDK."""
    parser = Parser(prog="beam", add_help=False)
    for options_class in (PipelineOptions, *_subclasses(PipelineOptions)):
        if "_add_argparse_args" in vars(options_class):
            options_class._add_argparse_args(parser)
    return parser


def _subclasses(parent: Any) -> list[Any]:
    children = parent.__subclasses__()
    return [*children, *(deeper for child in children for deeper in _subclasses(child))]
