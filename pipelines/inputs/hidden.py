"""Names that are no corpus: what systems and programs keep for themselves, and what is unfinished.

git-annex keeps the very files in .git that the links of a work tree lead to; in .no_exist the cache
of the Hugging Face hub has an empty file for each that a repository lacks; in _temporary Hadoop and
Spark write what they have not finished; __MACOSX has a part of each file that macOS packed.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase

_NAMES = frozenset(
    {"_temporary", "__MACOSX", "__pycache__", "_delta_log", "_spark_metadata", "lost+found"}
)


def is_hidden(name: str) -> bool:
    """Return whether a file or folder of this name is read only if it is named itself."""
    return name.startswith(".") or name in _NAMES


def is_named(name: str, part: str) -> bool:
    """Return whether a part of a glob names a hidden file or folder: its first character at least.

    So `*` and `?x` do not match `.x`, as in Python's glob, and `.*` does.
    """
    return part[:1] == name[:1] and fnmatchcase(name, part)


def hidden_part(relative: str, parts: Sequence[str] = ()) -> str:
    """Return the path of the first hidden file or folder on the way to a file; "" if none is.

    Args:
        relative: The file, below the folder that is searched.
        parts: Those of the glob that found it.
    """
    names = relative.split("/")
    for number, name in enumerate(names, start=1):
        if is_hidden(name) and not any(is_named(name, part) for part in parts):
            return "/".join(names[:number]) + ("/" if number < len(names) else "")
    return ""
