"""Patterns of the file names that count in a folder, for corpora without names of their own."""

_COMPRESSIONS = ("", ".gz", ".zst", ".bz2")

JSON_FILES = tuple(
    f"*.{ending}{packed}" for ending in ("jsonl", "ndjson", "json") for packed in _COMPRESSIONS
)
TEXT_FILES = (*JSON_FILES, *(f"*.txt{packed}" for packed in _COMPRESSIONS), "*.parquet")
