"""What an engine calls a job: by its dataset and phase, or as --job_name says.

And where Beam starts Prism, its page, which Beam would leave out.
"""

import logging
import re
import socket
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pipelines.engine import beam
from pipelines.engine.beam import PipelineOptions, PipelineRunner
from pipelines.engine.cluster import runner_name

_ODD = re.compile(r"[^\w.+-]+")
_NOT_DATAFLOW = re.compile(r"[^a-z0-9]+")
_NO_PAGE = "--serve_http=false"
_MOST_DATAFLOW = 40
"""Characters of a name, without the number that follows: Dataflow takes 63."""

_WEB_PORT = 8074
"""Where Prism has its page by itself."""

_LOG = logging.getLogger("corpusmill")


def named_options(flags: Sequence[str], dataset: str, phase: str) -> PipelineOptions:
    """Return Beam's options, with a name for the job if the flags give none.

    Args:
        flags: Beam's own.
        dataset: The name of the dataset, any string.
        phase: What the job does, a word.
    """
    options = PipelineOptions([*flags])
    job = options.view_as(beam.GoogleCloudOptions)
    if not job.job_name:
        words = ["corpusmill", _ODD.sub("-", dataset).strip("-"), phase]
        job.job_name = " ".join(word for word in words if word)
        if runner_name(flags) == "DataflowRunner":
            job.job_name = _for_dataflow(job.job_name)
    return options


def _for_dataflow(name: str) -> str:
    """Return a name that Dataflow takes: of small letters, and not that of another job."""
    plain = _NOT_DATAFLOW.sub("-", name.lower())[:_MOST_DATAFLOW].strip("-")
    return f"{plain}-{uuid.uuid4().hex[:8]}"


def named_runner(options: PipelineOptions) -> PipelineRunner | None:
    """Return a runner for Prism that tells it the job's name; None where Beam's own tells it."""
    flags = options.view_as(beam.StandardOptions)
    prism: PipelineRunner = _Prism()  # type: ignore[no-untyped-call]  # Beam's has no types
    return prism if (flags.runner or "").rpartition(".")[2] == "PrismRunner" else None


class _Prism(beam.PrismRunner):
    """Beam's own sends the name among the options, where Flink looks, and calls every job `job`."""

    def create_job_service_handle(self, job_service: Any, options: PipelineOptions) -> Any:
        """Return Beam's client of a job service that is told the name."""
        name = options.view_as(beam.GoogleCloudOptions).job_name
        service = _Named(job_service, name)
        return super().create_job_service_handle(service, options)  # type: ignore[no-untyped-call]

    def default_job_server(self, options: PipelineOptions) -> Any:
        """Return a Prism of this process, the same for all its jobs."""
        server = _Server(options)  # type: ignore[no-untyped-call]
        return self.shared_handle.acquire(lambda: beam.StopOnExitJobServer(server))


class _Server(beam.PrismJobServer):
    def prism_arguments(self, job_port: int) -> list[Any]:
        """Return the arguments of Beam's own, with a page."""
        port = _page_port()
        _LOG.info("Prism's page, until the run ends: http://localhost:%d", port)
        given = super().prism_arguments(job_port)
        return [word for word in given if word != _NO_PAGE] + ["--web_port", port]


def _page_port() -> int:
    """Return a port for the page of a Prism that is started: the usual one, if it is free."""
    for wanted in (_WEB_PORT, 0):
        with suppress(OSError), socket.socket() as free:
            free.bind(("127.0.0.1", wanted))
            return int(free.getsockname()[1])
    return 0


@dataclass
class _Named:
    """A job service; what Beam's client asks of it is passed on."""

    service: Any
    name: str

    def __getattr__(self, method: str) -> Any:
        return getattr(self.service, method)

    def Prepare(self, request: Any, **options: Any) -> Any:
        request.job_name = self.name
        return self.service.Prepare(request, **options)
