"""Beam pipelines: raw corpora in, token shards out."""

import shards as shards  # before all others: it finds out whether there is room for them
