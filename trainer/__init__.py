"""The GLM trainer: reads shards."""

from shards.room import check_room

check_room("trainer", spare_mb=256)
