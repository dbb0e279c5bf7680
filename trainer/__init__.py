"""The GLM trainer: reads shards."""
