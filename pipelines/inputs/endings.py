"""Endings of file names: which files of a folder count, and what reads the others.

Upper and lower case are the same.
"""

import glob
import re
from collections.abc import Callable, Sequence
from fnmatch import translate
from pathlib import PurePosixPath

COMPRESSIONS = (".gz", ".zst", ".bz2", ".xz")
"""Endings of compressed files that are read."""

JSON_FILES = tuple(
    f"*.{ending}{packed}"
    for ending in ("jsonl", "jsonlines", "ndjson", "json")
    for packed in ("", *COMPRESSIONS)
)
TEXT_FILES = (*JSON_FILES, *(f"*.txt{packed}" for packed in ("", *COMPRESSIONS)), "*.parquet")
"""Patterns of corpora without file names of their own."""

FROM_TABLES = (
    'CSV is read once it is Parquet: python -c "import pyarrow.csv as c, pyarrow.parquet as p; '
    "p.write_table(c.read_csv('FILE.csv'), 'FILE.parquet')\"."
)
"""What to do with a table of text; a message's sentence."""


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tells whether the path of a file matches one of some patterns.

    Args:
        patterns: Of names, as `part-*.json`; one with a slash is compared with the last parts of
            the path.
    """
    lower = [pattern.lower() for pattern in patterns]
    # Nearly all are of this kind, and a folder may have a million files.
    endings = tuple(each[1:] for each in lower if each[:1] == "*" and _is_plain(each[1:]))
    paths = [each for each in lower if "/" in each]
    names = [each for each in lower if not ("/" in each or each.endswith(endings))]
    is_named = re.compile("|".join(map(translate, names)) or r"(?!)").match

    def matches(path: str) -> bool:
        path = path.lower()
        name = path.rpartition("/")[2]
        return (
            name.endswith(endings)
            or is_named(name) is not None
            or any(map(PurePosixPath(path).match, paths))
        )

    return matches


def _is_plain(text: str) -> bool:
    return "/" not in text and not glob.has_magic(text)
