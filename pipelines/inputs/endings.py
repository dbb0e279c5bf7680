"""Patterns of the file names that count in a folder, for corpora without names of their own."""

_COMPRESSIONS = ("", ".gz", ".zst", ".bz2")

JSON_FILES = tuple(
    f"*.{ending}{packed}" for ending in ("jsonl", "ndjson", "json") for packed in _COMPRESSIONS
)
TEXT_FILES = (*JSON_FILES, *(f"*.txt{packed}" for packed in _COMPRESSIONS), "*.parquet")

FROM_TABLES = (
    'CSV is read once it is Parquet: python -c "import pyarrow.csv as c, pyarrow.parquet as p; '
    "p.write_table(c.read_csv('FILE.csv'), 'FILE.parquet')\"."
)
"""What to do with a table of text; a message's sentence."""
