"""Decides by their names which files of a folder are read, and gives advice on the rest.

Extensions may be in upper or lower case. Hidden names belong to systems and programs, or to
unfinished files: git-annex keeps the targets of a work tree's links in .git; the cache of the
Hugging Face hub has an empty file in .no_exist for each file that a repository lacks; Hadoop and
Spark write unfinished files to _temporary; __MACOSX has a part of each file that macOS packed.
"""

import glob
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase, translate
from pathlib import PurePosixPath

COMPRESSIONS = (".gz", ".zst", ".bz2", ".xz")
"""The extensions of compressed files that can be read."""

JSON_FILES = tuple(
    f"*.{ending}{packed}"
    for ending in ("jsonl", "jsonlines", "ndjson", "json")
    for packed in ("", *COMPRESSIONS)
)
TEXT_FILES = (
    *JSON_FILES,
    *(f"*.txt{packed}" for packed in ("", *COMPRESSIONS)),
    "*.parquet",
    "*.arrow",
)
"""The file patterns of corpora that have no special file names."""

_FORMATS = (".jsonl", ".jsonlines", ".ndjson", ".json", ".txt", ".parquet", ".arrow")

FROM_TABLES = (
    'Convert CSV to Parquet: python -c "import pyarrow.csv as c, pyarrow.parquet as p; '
    "p.write_table(c.read_csv('FILE.csv'), 'FILE.parquet')\"."
)
"""Advice on CSV and TSV files, as a sentence of a message."""

TABLES = tuple(f"{ending}{packed}" for ending in (".csv", ".tsv") for packed in ("", *COMPRESSIONS))
_ARCHIVES = (".tar", ".tgz", ".zip", ".rar", ".7z", *(f".tar{packed}" for packed in COMPRESSIONS))
_OTHER_FORMATS = (".xml", ".html", ".htm", ".pdf", ".docx", ".epub", ".xlsx", ".warc")

_HIDDEN = frozenset(
    {"_temporary", "__MACOSX", "__pycache__", "_delta_log", "_spark_metadata", "lost+found"}
)
_NO_ENDING = re.compile(r"\s|\d\d|.{12}")
"""Matches a part after a dot that is not an extension, as in part.00017."""


def ending_of(path: str) -> str:
    """Return the extension of a file, with that of its compression; "" if there is none."""
    name = path.rpartition("/")[2]
    packed = next((end for end in COMPRESSIONS if name.lower().endswith(end)), "")
    inner = PurePosixPath(name[: len(name) - len(packed)]).suffix
    return ("" if _NO_ENDING.search(inner) else inner) + name[len(name) - len(packed) :]


def without_compression(path: str) -> str:
    """Return the path of a file without the extension of its compression."""
    packed = path.lower().endswith(COMPRESSIONS)
    return path.rpartition(".")[0] if packed else path


def stem_of(path: str) -> str:
    """Return the path of a file without the extensions that determine how it is read."""
    path = without_compression(path)
    return path.rpartition(".")[0] if path.lower().endswith(_FORMATS) else path


def advice_on(paths: Sequence[str]) -> str:
    """Return advice on the skipped files of a folder, as sentences to append to a message."""
    names = [path.lower() for path in paths]
    advice = ""
    if any(name.endswith(TABLES) for name in names):
        advice += f" {FROM_TABLES}"
    if any(name.endswith(_ARCHIVES) for name in names):
        advice += " Unpack archives first."
    if any(name.endswith((*_OTHER_FORMATS, ".warc.gz")) for name in names):
        advice += " For other formats, write a corpus (docs/own.md)."
    return advice


def advice_on_names(paths: Sequence[str]) -> str:
    """Return advice on skipped files whose format can be read, like `advice_on`."""
    known = next(filter(matcher(TEXT_FILES), paths), "")
    folder, slash, _ = known.rpartition("/")
    glob_of_them = f"{folder}{slash}*{ending_of(known)}"
    return f" To read files with any name, give a glob: --input '{glob_of_them}'." if known else ""


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tests whether the path of a file matches one of the patterns.

    Args:
        patterns: Patterns of file names, such as `part-*.json`. A pattern with a slash is compared
            with the last components of the path.
    """
    lower = [pattern.lower() for pattern in patterns]
    # Nearly all patterns are of this kind, and a folder may have a million files.
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


def is_hidden(name: str) -> bool:
    """Return whether a name is hidden: such a file or folder is read only if named explicitly."""
    return name.startswith(".") or name in _HIDDEN


def is_named(name: str, part: str) -> bool:
    """Return whether a component of a glob explicitly matches the first character of a hidden name.

    So `*` and `?x` do not match `.x`, as in Python's glob, but `.*` does.
    """
    return part[:1] == name[:1] and fnmatchcase(name, part)


def hidden_part(relative: str, parts: Sequence[str] = ()) -> str:
    """Return the path of the first hidden component on the way to a file; "" if there is none.

    Args:
        relative: The path of the file relative to the folder that is searched.
        parts: The components of the glob that found the file.
    """
    names = relative.split("/")
    for number, name in enumerate(names, start=1):
        if is_hidden(name) and not any(is_named(name, part) for part in parts):
            return "/".join(names[:number]) + ("/" if number < len(names) else "")
    return ""


def split_at_wildcard(parts: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Split the components of a path before the first one that contains a wildcard."""
    magic = [number for number, part in enumerate(parts) if glob.has_magic(part)]
    first = magic[0] if magic else len(parts)
    return parts[:first], parts[first:]
