"""The names of files that a folder is searched for, where a corpus has none of its own."""

_PACKED = ("", ".gz", ".zst", ".bz2")

JSON_FILES = tuple(f"*.{kind}{end}" for kind in ("jsonl", "ndjson", "json") for end in _PACKED)
TEXT_FILES = (*JSON_FILES, *(f"*.txt{end}" for end in _PACKED), "*.parquet")
