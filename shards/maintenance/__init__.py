"""What changes, checks or copies a dataset: remove, compact, prune, verify, place."""
