"""What engines other than this machine's own workers are told, and asked, before they run a task.

A person's flags go to Beam as they are. Two are added where they are missing, for Flink, which
would let one Python process serve all slots of a machine, and so leave all its cores but one idle.
"""

import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pipelines.engine.beam import (
    DebugOptions,
    FlinkRunnerOptions,
    PipelineOptions,
    PortableOptions,
    StandardOptions,
)
from shards.command import Parser
from shards.errors import UserError

ANSWER_SECONDS = 10.0
"""How long an engine may take to take a connection."""

_LOCAL = {"", "DirectRunner", "FnApiRunner"}
_FLINK = {"FlinkRunner", "PortableRunner"}
_PROCESSES = "sdk_worker_parallelism"
_LOOPBACK_PROCESSES = "use_loopback_process_worker"


def engine(flags: Sequence[str]) -> str:
    """Return the name of the runner that the flags ask for; empty for this machine's workers."""
    name = (PipelineOptions([*flags]).view_as(StandardOptions).runner or "").rpartition(".")[2]
    return "" if name in _LOCAL else name


def with_processes(flags: Sequence[str]) -> list[str]:
    """Return the flags, and what gives each slot of Flink a Python process of its own.

    --sdk_worker_parallelism is how many processes one TaskManager may start; it starts one when a
    step of a slot asks for it, and deals them out in turn. A job has two steps in Python, one that
    hands out tasks and one that does them; with fewer processes than steps two slots could share
    one. A machine's slots are at most the job's, so twice those are enough wherever they lie.

    With environment LOOPBACK workers are children of the driver; Beam by itself has threads there.
    """
    if engine(flags) not in _FLINK or any(flag.startswith(f"--{_PROCESSES}") for flag in flags):
        return [*flags]
    options = PipelineOptions([*flags])
    slots = options.view_as(FlinkRunnerOptions).parallelism
    added = [f"--{_PROCESSES}={2 * (slots if slots > 0 else os.cpu_count() or 1)}"]
    loopback = options.view_as(PortableOptions).environment_type == "LOOPBACK"
    if loopback and not options.view_as(DebugOptions).lookup_experiment(_LOOPBACK_PROCESSES):
        added.append(f"--experiments={_LOOPBACK_PROCESSES}")
    return [*flags, *added]


def lead_path_here() -> None:
    """Make `python` this Python for child processes: Beam starts its workers by that name."""
    here = str(Path(sys.executable).parent)
    paths = os.environ.get("PATH", os.defpath).split(os.pathsep)
    if paths[0] != here:
        os.environ["PATH"] = os.pathsep.join([here, *paths])


def check_answers(flags: Sequence[str]) -> None:
    """Check that somebody listens where the flags say that the engine is.

    Raises:
        UserError: Nobody does; it is found out in ANSWER_SECONDS.
    """
    options = PipelineOptions([*flags])
    endpoint = options.view_as(PortableOptions).job_endpoint
    master = options.view_as(FlinkRunnerOptions).flink_master
    if endpoint and endpoint != "embed":
        _connect("--job_endpoint", endpoint, "a job server of Beam (HOST:PORT)")
    elif engine(flags) == "FlinkRunner" and not master.startswith("["):
        _connect("--flink_master", master, "the REST address of Flink's JobManager (HOST:PORT)")


def _connect(flag: str, address: str, expected: str) -> None:
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        if not parts.hostname or not port:
            raise ValueError("it names no host and port")
        socket.create_connection((parts.hostname, port), timeout=ANSWER_SECONDS).close()
    except (OSError, ValueError) as error:
        raise UserError(
            f"{flag} {address} does not answer ({error}). It should be {expected}: start it, or "
            "give the address where it runs. Nothing was begun; what an earlier run finished is "
            "kept"
        ) from error


def beam_flags(words: Sequence[str]) -> list[str]:
    """Return the flags for Beam among the words of a command line that are no flags of a corpus.

    Args:
        words: Flags of Beam's Python SDK; then, behind `--`, what only the runner knows.

    Raises:
        UserError: Beam's Python SDK does not know one of them.
    """
    end = words.index("--") if "--" in words else len(words)
    parser = Parser(prog="beam", add_help=False)
    for options_class in (PipelineOptions, *_subclasses(PipelineOptions)):
        if "_add_argparse_args" in vars(options_class):
            options_class._add_argparse_args(parser)
    unknown = parser.parse_known_args(list(words[:end]))[1]
    if unknown:
        raise UserError(
            f"unknown flag {unknown[0]}: neither this command nor Beam's Python SDK has it. "
            "What only the runner knows goes behind --, as in: -- --checkpointing_interval=5000"
        )
    return [*words[:end], *words[end + 1 :]]


def _subclasses(kind: Any) -> list[Any]:
    found = list(kind.__subclasses__())
    return found + [deeper for child in found for deeper in _subclasses(child)]
