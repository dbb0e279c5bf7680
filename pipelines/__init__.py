"""Beam pipelines: raw corpora in, token shards out."""
