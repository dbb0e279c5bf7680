"""Memory-mapped token shards: format, writer, reader, manifest; windows in a random order.

What is listed here is public (docs/own.md); all else may change without a word.
"""

from shards.errors import DamageError, UserError
from shards.extras import install_missing_extra_hook
from shards.manifest import TRAIN, VALIDATION, Manifest
from shards.mixture import Blend
from shards.order.sampler import Sampler
from shards.order.sequential import SequentialSampler
from shards.order.streams import streams_of
from shards.published import fetch
from shards.reader import Dataset, Documents, Shard
from shards.run import BatchSize, Run
from shards.switches import resolve_versions, switch_version
from shards.vocabulary import Vocabulary
from shards.windows import causal_windows, glm_windows
from shards.writer import write_shard

__all__ = [
    "TRAIN",
    "VALIDATION",
    "BatchSize",
    "Blend",
    "DamageError",
    "Dataset",
    "Documents",
    "Manifest",
    "Run",
    "Sampler",
    "SequentialSampler",
    "Shard",
    "UserError",
    "Vocabulary",
    "causal_windows",
    "fetch",
    "glm_windows",
    "resolve_versions",
    "streams_of",
    "switch_version",
    "write_shard",
]

install_missing_extra_hook()
