"""Memory-mapped token shards: format, writer, reader, manifest; windows in a random order.

What is listed here is public (docs/own.md); all else may change without a word.
"""

from shards.errors import DamageError, UserError
from shards.extras import tell_missing
from shards.manifest import TRAIN, VALIDATION, Manifest
from shards.mixture import Mix
from shards.order.onepass import OnePass
from shards.order.sampler import Sampler
from shards.order.streams import streams_of
from shards.published import fetch
from shards.reader import Dataset, Documents, Shard
from shards.run import BatchSize, Run
from shards.switches import pinned, switched
from shards.vocabulary import Vocabulary
from shards.windows import causal_windows, glm_windows
from shards.writer import write_shard

__all__ = [
    "TRAIN",
    "VALIDATION",
    "BatchSize",
    "DamageError",
    "Dataset",
    "Documents",
    "Manifest",
    "Mix",
    "OnePass",
    "Run",
    "Sampler",
    "Shard",
    "UserError",
    "Vocabulary",
    "causal_windows",
    "fetch",
    "glm_windows",
    "pinned",
    "streams_of",
    "switched",
    "write_shard",
]

tell_missing()
