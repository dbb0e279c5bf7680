"""The names of Apache Beam that this package uses, imported without warnings of missing extras."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.execute.imports import without_pandas

_disabled = logging.root.manager.disable
_handlers = [*logging.root.handlers]
# Beam's BigQuery client warns through the root logger if Google's libraries are not installed.
logging.disable(logging.WARNING)
try:
    with without_pandas():
        import apache_beam
finally:
    logging.disable(_disabled)
    logging.root.handlers[:] = _handlers  # Beam's warning has configured the log as a side effect

from apache_beam import *
from apache_beam.coders import Coder as Coder
from apache_beam.coders import typecoders as typecoders
from apache_beam.metrics.metric import Metrics as Metrics
from apache_beam.options.pipeline_options import *
from apache_beam.options.pipeline_options import FlinkRunnerOptions as FlinkRunnerOptions
from apache_beam.options.pipeline_options import PortableOptions as PortableOptions
from apache_beam.portability.api import beam_fn_api_pb2 as beam_fn_api_pb2
from apache_beam.pvalue import *
from apache_beam.pvalue import PBegin as PBegin
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner as FnApiRunner
from apache_beam.runners.portability.prism_runner import PrismRunner as PrismRunner
from apache_beam.runners.runner import PipelineResult as PipelineResult
from apache_beam.runners.runner import PipelineRunner as PipelineRunner
from apache_beam.runners.worker import sdk_worker as sdk_worker
from apache_beam.runners.worker import worker_pool_main as worker_pool_main
from apache_beam.runners.worker.sdk_worker import SdkHarness as SdkHarness
from apache_beam.transforms.trigger import *
from apache_beam.transforms.util import *
from apache_beam.transforms.window import *
from apache_beam.typehints.row_type import RowTypeConstraint as RowTypeConstraint
from apache_beam.utils.timestamp import Timestamp as Timestamp
from apache_beam.utils.windowed_value import WindowedValue as WindowedValue
from grpc import RpcError as RpcError


@contextmanager
def without_cells() -> Iterator[None]:
    """Keep cell numbers of a notebook out of the labels of a pipeline.

    To add the cell numbers, Beam imports its DataFrames, and this import fails with pandas 3.
    """
    names = vars(apache_beam.pipeline)
    altered = names["alter_label_if_ipython"]
    names["alter_label_if_ipython"] = lambda *_: None
    try:
        yield
    finally:
        names["alter_label_if_ipython"] = altered
