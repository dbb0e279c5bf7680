"""WriteShards: segments become shards."""
