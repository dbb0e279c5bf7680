"""Runs an engine's Python workers as children of the driver, for the environment LOOPBACK.

Beam's own LOOPBACK runs workers as threads of the driver, which share its interpreter, or as
processes that print tracebacks on its terminal whenever an engine hangs up at the end of a job.
"""

import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from pipelines.execute import beam

_RUNNERS = ("FlinkRunner", "PortableRunner", "SparkRunner")


def with_loopback_workers(flags: Sequence[str], *, runner: str) -> list[str]:
    """Return flags that make an engine request workers from this process, if `flags` say LOOPBACK.

    Args:
        flags: Beam's flags.
        runner: The name of the runner that the flags select.
    """
    options = beam.PipelineOptions([*flags]).view_as(beam.PortableOptions)
    if runner not in _RUNNERS or options.environment_type != "LOOPBACK":
        return [*flags]
    return [*flags, "--environment_type=EXTERNAL", f"--environment_config={_pool()[0]}"]


@cache
def _pool() -> tuple[str, Any]:
    """Return the address and the server of this process's pool; Beam ends its workers at exit."""
    return _Pool.start(use_process=True)


class _Pool(beam.worker_pool_main.BeamFnExternalWorkerPoolServicer):
    """Starts workers as processes of this Python interpreter, with the command below."""

    def StartWorker(self, start_worker_request: Any, _: Any) -> Any:
        """Start one worker process."""
        request = start_worker_request
        command = f"from {__name__} import main; main()"
        words = [sys.executable, "-c", command, request.control_endpoint.url, request.worker_id]
        self._worker_processes[request.worker_id] = subprocess.Popen(
            words, stdin=subprocess.DEVNULL
        )
        return beam.beam_fn_api_pb2.StartWorkerResponse()


def report_errors_once() -> None:
    """Keep Beam's workers in this process from printing errors that the driver also receives."""
    sdk_worker = vars(beam.sdk_worker)
    sdk_worker["print"] = lambda *_, **__: None
    # The engine closes the stream at the end of a job; if it closes early, the error of the item
    # explains why.
    threading.excepthook = _print_unexpected


def main() -> None:
    """Serve an engine, whose address and worker name are in sys.argv, until it disconnects."""
    endpoint, worker = sys.argv[1:]
    # Ctrl-C goes to the driver, which then ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("apache_beam.runners.worker").setLevel(logging.CRITICAL)
    report_errors_once()
    with suppress(beam.RpcError):
        beam.SdkHarness(endpoint, worker_id=worker).run()


def _print_unexpected(
    failed: threading.ExceptHookArgs, default: Any = threading.excepthook
) -> None:
    if not isinstance(failed.exc_value, beam.RpcError):
        default(failed)
