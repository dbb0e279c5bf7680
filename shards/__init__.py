"""Memory-mapped token shards: format, writer, reader and manifest; windows in a random order.

The names listed here are public (docs/own.md); all others may change without notice.
"""

from shards.commands.extras import install_missing_extra_hook
from shards.errors import DamageError, UserError
from shards.manifest import TRAIN, VALIDATION, Manifest
from shards.published import fetch
from shards.reader import Dataset, Documents, Shard
from shards.sampling.mixture import Blend
from shards.sampling.plan import BatchSize, SamplingPlan
from shards.sampling.sampler import Sampler
from shards.sampling.sequential import SequentialSampler
from shards.sampling.streams import streams_of
from shards.sampling.switches import resolve_versions, switch_version
from shards.sampling.windows import causal_windows, glm_windows
from shards.vocabulary import Vocabulary
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
    "Sampler",
    "SamplingPlan",
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
