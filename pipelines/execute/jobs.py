"""The name of a job on an engine: that of its dataset, or --job_name."""

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.execute import beam
from pipelines.execute.beam import PipelineOptions, PipelineRunner
from pipelines.execute.cluster import runner_name

_ODD = re.compile(r"[^\w.+-]+")
_NOT_DATAFLOW = re.compile(r"[^a-z0-9]+")
_MAX_DATAFLOW = 40
"""Characters of a name, without the number that follows: Dataflow takes 63."""


def named_options(flags: Sequence[str], dataset: str) -> PipelineOptions:
    """Return Beam's options, with a name for the job if the flags give none.

    Args:
        flags: Beam's own.
        dataset: The name of the dataset, any string.
    """
    options = PipelineOptions([*flags])
    job = options.view_as(beam.GoogleCloudOptions)
    if not job.job_name:
        words = ["corpusmill", _ODD.sub("-", dataset).strip("-")]
        job.job_name = " ".join(word for word in words if word)
        if runner_name(flags) == "DataflowRunner":
            job.job_name = _for_dataflow(job.job_name)
    return options


def _for_dataflow(name: str) -> str:
    """Return a name that Dataflow takes: of small letters, and not that of another job."""
    plain = _NOT_DATAFLOW.sub("-", name.lower())[:_MAX_DATAFLOW].strip("-")
    return f"{plain}-{uuid.uuid4().hex[:8]}"


def named_runner(options: PipelineOptions) -> PipelineRunner | None:
    """Return a runner for Prism that tells it the job's name; None where Beam's own tells it."""
    flags = options.view_as(beam.StandardOptions)
    prism: PipelineRunner = _Prism()  # type: ignore[no-untyped-call]  # Beam's has no types
    return prism if (flags.runner or "").rpartition(".")[2] == "PrismRunner" else None


class _Prism(beam.PrismRunner):
    """Beam's own sends the name among the options, where Flink looks, and calls every job `job`."""

    def create_job_service_handle(self, job_service: Any, options: PipelineOptions) -> Any:
        """Return Beam's client of a job service, which sends the name."""
        name = options.view_as(beam.GoogleCloudOptions).job_name
        service = _Named(job_service, name)
        return super().create_job_service_handle(service, options)  # type: ignore[no-untyped-call]


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
