"""WriteShards, which turns segments into shards."""
