"""The names of Apache Beam that this package uses, imported without warnings of missing extras."""

import logging

_disabled = logging.root.manager.disable
# Beam's BigQuery client warns through the root logger if Google's libraries are not installed.
logging.disable(logging.WARNING)
try:
    from apache_beam import Create, DoFn, Impulse, Map, ParDo, Pipeline, PTransform, Reshuffle
    from apache_beam.coders import PickleCoder
    from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
    from apache_beam.metrics.metric import Metrics
    from apache_beam.options.pipeline_options import (
        DebugOptions,
        FlinkRunnerOptions,
        GoogleCloudOptions,
        PipelineOptions,
        PortableOptions,
        PrismRunnerOptions,
        StandardOptions,
    )
    from apache_beam.pvalue import PBegin, PCollection
    from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
    from apache_beam.runners.portability.job_server import StopOnExitJobServer
    from apache_beam.runners.portability.prism_runner import PrismJobServer, PrismRunner
    from apache_beam.runners.runner import PipelineResult, PipelineRunner
    from apache_beam.transforms.periodicsequence import (
        ImpulseSeqGenRestrictionProvider,
    )
    from apache_beam.transforms.userstate import ReadModifyWriteStateSpec
    from apache_beam.transforms.window import TimestampedValue
    from apache_beam.utils.timestamp import MAX_TIMESTAMP, Timestamp
finally:
    logging.disable(_disabled)

__all__ = [
    "MAX_TIMESTAMP",
    "Create",
    "DebugOptions",
    "DoFn",
    "FlinkRunnerOptions",
    "FnApiRunner",
    "GoogleCloudOptions",
    "Impulse",
    "ImpulseSeqGenRestrictionProvider",
    "ManualWatermarkEstimator",
    "Map",
    "Metrics",
    "PBegin",
    "PCollection",
    "PTransform",
    "ParDo",
    "PickleCoder",
    "Pipeline",
    "PipelineOptions",
    "PipelineResult",
    "PipelineRunner",
    "PortableOptions",
    "PrismJobServer",
    "PrismRunner",
    "PrismRunnerOptions",
    "ReadModifyWriteStateSpec",
    "Reshuffle",
    "StandardOptions",
    "StopOnExitJobServer",
    "Timestamp",
    "TimestampedValue",
]
