"""What this package takes of Apache Beam, imported without its warnings about absent extras."""

import logging

_disabled = logging.root.manager.disable
# Beam's BigQuery client warns through the root logger wherever Google's libraries are not there.
logging.disable(logging.WARNING)
try:
    from apache_beam import Create, DoFn, ParDo, Pipeline, PTransform, Reshuffle
    from apache_beam.options.pipeline_options import (
        DebugOptions,
        FlinkRunnerOptions,
        GoogleCloudOptions,
        PipelineOptions,
        PortableOptions,
        StandardOptions,
    )
    from apache_beam.pvalue import PBegin, PCollection
    from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
    from apache_beam.runners.runner import PipelineResult
finally:
    logging.disable(_disabled)

__all__ = [
    "Create",
    "DebugOptions",
    "DoFn",
    "FlinkRunnerOptions",
    "FnApiRunner",
    "GoogleCloudOptions",
    "PBegin",
    "PCollection",
    "PTransform",
    "ParDo",
    "Pipeline",
    "PipelineOptions",
    "PipelineResult",
    "PortableOptions",
    "Reshuffle",
    "StandardOptions",
]
