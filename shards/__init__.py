"""Memory-mapped token shards: format, writer, reader, manifest; windows in a random order.

What is listed here is public (docs/own.md); all else may change without a word.
"""

from typing import TYPE_CHECKING

from shards.extras import tell_missing
from shards.face import lazily
from shards.interrupt import end_at_interrupt

end_at_interrupt()
tell_missing()

if TYPE_CHECKING:
    from shards.errors import DamageError as DamageError
    from shards.errors import UserError as UserError
    from shards.manifest import TRAIN as TRAIN
    from shards.manifest import VALIDATION as VALIDATION
    from shards.manifest import Manifest as Manifest
    from shards.mixture import Mix as Mix
    from shards.order.onepass import OnePass as OnePass
    from shards.order.sampler import Sampler as Sampler
    from shards.order.streams import streams_of as streams_of
    from shards.published import fetch as fetch
    from shards.reader import Dataset as Dataset
    from shards.reader import Documents as Documents
    from shards.reader import Shard as Shard
    from shards.run import BatchSize as BatchSize
    from shards.run import Run as Run
    from shards.switches import UNSEEN as UNSEEN
    from shards.switches import pinned as pinned
    from shards.switches import switched as switched
    from shards.vocabulary import Vocabulary as Vocabulary
    from shards.windows import causal_windows as causal_windows
    from shards.windows import glm_windows as glm_windows
    from shards.writer import write_shard as write_shard
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
