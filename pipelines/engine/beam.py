"""The names of Apache Beam that this package uses, imported without warnings of missing extras."""

import logging

_disabled = logging.root.manager.disable
# Beam's BigQuery client warns through the root logger if Google's libraries are not installed.
logging.disable(logging.WARNING)
try:
    from apache_beam import (
        Create,
        DoFn,
        FlatMap,
        Flatten,
        GroupByKey,
        Impulse,
        Map,
        ParDo,
        Pipeline,
        PTransform,
        Reshuffle,
    )
    from apache_beam.coders import Coder
    from apache_beam.coders.typecoders import registry as coders
    from apache_beam.metrics.metric import Metrics
    from apache_beam.options.pipeline_options import (
        FlinkRunnerOptions,
        GoogleCloudOptions,
        PipelineOptions,
        PortableOptions,
        StandardOptions,
    )
    from apache_beam.portability.api import beam_fn_api_pb2 as fn_api
    from apache_beam.pvalue import AsList, PBegin, PCollection, Row, TaggedOutput
    from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
    from apache_beam.runners.portability.job_server import StopOnExitJobServer
    from apache_beam.runners.portability.prism_runner import PrismJobServer, PrismRunner
    from apache_beam.runners.runner import PipelineResult, PipelineRunner
    from apache_beam.runners.worker.sdk_worker import SdkHarness
    from apache_beam.runners.worker.worker_pool_main import (
        BeamFnExternalWorkerPoolServicer as WorkerPool,
    )
    from apache_beam.transforms.trigger import AccumulationMode, DefaultTrigger
    from apache_beam.transforms.util import BatchElements
    from apache_beam.transforms.window import GlobalWindow, GlobalWindows
    from apache_beam.typehints.row_type import RowTypeConstraint
    from apache_beam.utils.timestamp import Timestamp
    from apache_beam.utils.windowed_value import WindowedValue
    from grpc import RpcError
finally:
    logging.disable(_disabled)

__all__ = [
    "AccumulationMode",
    "AsList",
    "BatchElements",
    "Coder",
    "Create",
    "DefaultTrigger",
    "DoFn",
    "FlatMap",
    "Flatten",
    "FlinkRunnerOptions",
    "FnApiRunner",
    "GlobalWindow",
    "GlobalWindows",
    "GoogleCloudOptions",
    "GroupByKey",
    "Impulse",
    "Map",
    "Metrics",
    "PBegin",
    "PCollection",
    "PTransform",
    "ParDo",
    "Pipeline",
    "PipelineOptions",
    "PipelineResult",
    "PipelineRunner",
    "PortableOptions",
    "PrismJobServer",
    "PrismRunner",
    "Reshuffle",
    "Row",
    "RowTypeConstraint",
    "RpcError",
    "SdkHarness",
    "StandardOptions",
    "StopOnExitJobServer",
    "TaggedOutput",
    "Timestamp",
    "WindowedValue",
    "WorkerPool",
    "coders",
    "fn_api",
]
