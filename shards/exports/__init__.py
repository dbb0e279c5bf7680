"""Writes datasets as the files that other projects train on."""
