"""Memory-mapped token shards: format, writer, reader, manifest; windows in a random order.

What is listed here is public (docs/python.md); all else may change without a word.
"""

from shards.memory import check_room

check_room()

# What has room now.
# ruff: noqa: E402
from typing import TYPE_CHECKING

from shards.errors import DamageError as DamageError
from shards.errors import UserError as UserError
from shards.face import lazily
from shards.manifest import TRAIN as TRAIN
from shards.manifest import VALIDATION as VALIDATION
from shards.manifest import Manifest as Manifest
from shards.reader import Dataset as Dataset
from shards.reader import Documents as Documents
from shards.reader import Shard as Shard
from shards.writer import write_shard as write_shard

if TYPE_CHECKING:
    from shards.mixture import Mix as Mix
    from shards.order.onepass import OnePass as OnePass
    from shards.order.sampler import Sampler as Sampler
    from shards.order.streams import streams_of as streams_of
    from shards.run import BatchSize as BatchSize
    from shards.run import Run as Run
    from shards.switches import UNSEEN as UNSEEN
    from shards.switches import pinned as pinned
    from shards.switches import switched as switched
    from shards.vocabulary import Vocabulary as Vocabulary
    from shards.windows import causal_windows as causal_windows
    from shards.windows import glm_windows as glm_windows
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "BatchSize": "shards.run",
            "Mix": "shards.mixture",
            "OnePass": "shards.order.onepass",
            "Run": "shards.run",
            "Sampler": "shards.order.sampler",
            "UNSEEN": "shards.switches",
            "Vocabulary": "shards.vocabulary",
            "causal_windows": "shards.windows",
            "glm_windows": "shards.windows",
            "pinned": "shards.switches",
            "streams_of": "shards.order.streams",
            "switched": "shards.switches",
        },
    )

__all__ = [
    "TRAIN",
    "UNSEEN",
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
    "glm_windows",
    "pinned",
    "streams_of",
    "switched",
    "write_shard",
]
