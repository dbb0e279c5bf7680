"""Checkpoints of runs: written, checked, read, converted to another number of ranks."""
