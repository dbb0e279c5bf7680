"""Chooses a job's name on an engine: the name of its dataset, or --job_name."""

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
"""The maximum length of a name before the number that ends it; Dataflow allows 63 characters."""


def named_options(flags: Sequence[str], dataset: str) -> PipelineOptions:
    """Return Beam's options, with a name for the job if the flags give none.

    Args:
        flags: Beam's flags.
        dataset: The name of the dataset, which may be any string.
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
    """Return a unique name that Dataflow accepts, in lower-case letters."""
    plain = _NOT_DATAFLOW.sub("-", name.lower())[:_MAX_DATAFLOW].strip("-")
    return f"{plain}-{uuid.uuid4().hex[:8]}"


def named_runner(options: PipelineOptions) -> PipelineRunner | None:
    """Return a runner for Prism that passes on the job's name; None for other runners."""
    flags = options.view_as(beam.StandardOptions)
    prism: PipelineRunner = _Prism()  # type: ignore[no-untyped-call]  # Beam's class has no types
    return prism if (flags.runner or "").rpartition(".")[2] == "PrismRunner" else None


class _Prism(beam.PrismRunner):
    """A runner for Prism that passes on the job's name; Beam's own runner names every job `job`."""

    def create_job_service_handle(self, job_service: Any, options: PipelineOptions) -> Any:
        """Return Beam's client of a job service, changed to send the job's name."""
        name = options.view_as(beam.GoogleCloudOptions).job_name
        service = _Named(job_service, name)
        return super().create_job_service_handle(service, options)  # type: ignore[no-untyped-call]


@dataclass
class _Named:
    """A job service that adds the job's name and passes on all other requests."""

    service: Any
    name: str

    def __getattr__(self, method: str) -> Any:
        return getattr(self.service, method)

    def Prepare(self, request: Any, **options: Any) -> Any:
        request.job_name = self.name
        return self.service.Prepare(request, **options)
