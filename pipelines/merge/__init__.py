"""Segments become shards."""
