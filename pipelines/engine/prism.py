"""The engine of a watch: the one that the flags name, or Prism, started on this machine.

Prism is Beam's own runner for one machine, a single program. It ends with the process that started
it, however that ends: it is started by a shell that waits for the end of its input.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pipelines.engine import beam
from pipelines.engine.beam import PipelineOptions
from pipelines.engine.cluster import (
    check_engine_answers,
    runner_name,
    with_processes,
)
from pipelines.engine.flags import engine_name
from shards.errors import UserError

_GUARD = '"$@" </dev/null & child=$!; read -r _; kill -9 $child; wait'
_WEB_PORT = 8074
_START_SECONDS = 30.0
_FLINK = {"FlinkRunner", "PortableRunner"}
_IDLE = "shutdown_sources_after_idle_ms"
_GROUPS = "max_parallelism"


class Engine:
    """Where the jobs of a watch run. As a context manager it ends what it started."""

    def __init__(self, flags: Sequence[str]) -> None:
        """Find it; nothing is started.

        Args:
            flags: Beam's own.

        Raises:
            UserError: It is one that cannot stream, does not answer, or is not to be found here.
        """
        self._given = [*flags]
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self.page = ""
        """Address of the page of a Prism that was started here."""
        name = runner_name(flags)
        if not engine_name(flags) and name:
            raise UserError(
                f"--runner={name} ends a stream without a word after its first look, so --watch "
                f"does not use it. {_COMMANDS}"
            )
        self._program = _find_prism(flags) if name in ("", "PrismRunner") else ""
        if not name and not self._program:
            raise UserError(
                "--watch needs an engine that streams, and Prism, Beam's own for one machine, is "
                f"neither in PATH nor in ~/go/bin nor in Beam's cache. {_COMMANDS}"
            )
        if name and not self._program:
            check_engine_answers(flags)

    @property
    def own(self) -> bool:
        """Whether the work is done on this machine, in one process of the engine's."""
        return bool(self._program) or runner_name(self._given) == "PrismRunner"

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
            self._process = None

    @property
    def pid(self) -> int:
        """The process that guards a Prism that was started here; 0 if there is none."""
        return self._process.pid if self._process else 0

    def flags(self) -> list[str]:
        """Return Beam's flags for a job, after starting Prism if it is to be and does not run.

        Raises:
            UserError: The engine does not answer, or Prism does not start.
        """
        if not self._program:
            check_engine_answers(self._given)
            return with_stream_flags(with_processes(self._given))
        if not _answers(self._port):
            self.__exit__()
            self._start()
        rest = [flag for flag in self._given if not flag.startswith("--prism_location")]
        if not any(flag.startswith("--runner") for flag in rest):
            rest = [*rest, "--runner=PrismRunner"]
        return [*rest, f"--job_endpoint=localhost:{self._port}", "--environment_type=LOOPBACK"]

    def _start(self) -> None:
        self._port = _free_port()
        web = page_port()
        command = [
            *(self._program, "--job_port", str(self._port), "--web_port", str(web)),
            *("--log_level", "error"),
        ]
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "prism", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is the driver's to handle
        )
        end = time.monotonic() + _START_SECONDS
        while not _answers(self._port):
            if time.monotonic() > end:
                self.__exit__()
                raise UserError(
                    f"{self._program} does not listen on its port {self._port} after "
                    f"{_START_SECONDS:.0f} s: start it by hand to see why, or give another with "
                    "--prism_location"
                )
            time.sleep(0.05)
        self.page = f"http://localhost:{web}"


def page_port() -> int:
    """Return a port for the page of a Prism that is started: the usual one, if it is free."""
    return _free_port() if _answers(_WEB_PORT) else _WEB_PORT


_COMMANDS = (
    "Get Prism with `go install github.com/apache/beam/sdks/v2/go/cmd/prism@v2.77.0` (Go 1.23 or "
    "newer) and run the same command without --runner; or give --prism_location FILE, or "
    "--runner=PrismRunner, which fetches it from the internet. On a cluster: --runner=FlinkRunner "
    "--flink_master=HOST:8081 (docs/streaming.md)"
)


def with_stream_flags(flags: Sequence[str]) -> list[str]:
    """Return the flags, with two that a stream needs on Flink if they are missing.

    Sources that have nothing to do are to end: with checkpoints Flink's runner keeps them, and what
    a splittable DoFn then puts off never comes. And Beam keeps a table for every tick there has
    been, of 0.7 KB for each key group; by default there are 128 groups, which only matter to who
    changes the parallelism of a job.
    """
    if runner_name(flags) not in _FLINK:
        return [*flags]
    slots = PipelineOptions([*flags]).view_as(beam.FlinkRunnerOptions).parallelism
    added = {_IDLE: 0, **({_GROUPS: 2 * slots} if slots > 0 else {})}
    return [
        *flags,
        *(
            f"--{name}={value}"
            for name, value in added.items()
            if not any(flag.startswith(f"--{name}") for flag in flags)
        ),
    ]


def _find_prism(flags: Sequence[str]) -> str:
    """Return the path of Prism on this machine; empty if it is not here, or runs elsewhere."""
    options = PipelineOptions([*flags])
    endpoint = options.view_as(beam.PortableOptions).job_endpoint
    if endpoint:
        return ""
    given = options.view_as(beam.PrismRunnerOptions).prism_location
    if given:
        return str(given) if Path(given).is_file() and os.access(given, os.X_OK) else ""
    home = Path.home()
    places = [
        *(Path(folder) / "prism" for folder in (os.environ.get("GOBIN"),) if folder),
        home / "go" / "bin" / "prism",
        *sorted((home / ".apache_beam" / "cache" / "prism" / "bin").glob("*prism*")),
    ]
    found = shutil.which("prism")
    return found or next((str(place) for place in places if os.access(place, os.X_OK)), "")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def _answers(port: int) -> bool:
    if not port:
        return False
    with suppress(OSError), socket.create_connection(("localhost", port), timeout=1):
        return True
    return False
