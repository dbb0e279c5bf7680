"""Memory-mapped token shards: format, writer, reader, manifest."""

from shards.errors import DamageError as DamageError
from shards.errors import UserError as UserError
from shards.manifest import Manifest as Manifest
from shards.reader import Dataset as Dataset
from shards.reader import Shard as Shard
from shards.writer import write_shard as write_shard
