"""Beam pipelines: raw corpora in, token shards out."""

from shards.room import check_room

check_room("pipelines", modules=("pipelines.run.build",), spare_mb=256)
