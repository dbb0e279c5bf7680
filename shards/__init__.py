"""Memory-mapped token shards: format, writer, reader, manifest."""

from shards.memory import check_room

check_room()

# What has room now.
# ruff: noqa: E402
from shards.errors import DamageError as DamageError
from shards.errors import UserError as UserError
from shards.manifest import Manifest as Manifest
from shards.reader import Dataset as Dataset
from shards.reader import Shard as Shard
from shards.writer import write_shard as write_shard
