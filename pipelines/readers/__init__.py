"""Readers: what turns a split of an input file into records, one module for each format."""
