"""Names that are no corpus: what systems and programs keep for themselves, and what is unfinished.

git-annex keeps the very files in .git that the links of a work tree lead to; in .no_exist the cache
of the Hugging Face hub has an empty file for each that a repository lacks; in _temporary Hadoop and
Spark write what they have not finished; __MACOSX has a part of each file that macOS packed.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from pipelines.read.input_file import InputFile

_NAMES = frozenset(
    {"_temporary", "__MACOSX", "__pycache__", "_delta_log", "_spark_metadata", "lost+found"}
)

_DESCRIPTIONS = ("state.json", "dataset_info.json", "dataset_dict.json")
"""What Dataset.save_to_disk and DatasetDict.save_to_disk write about their Arrow files."""


def is_hidden(name: str) -> bool:
    """Return whether a file or folder of this name is read only if it is named itself."""
    return name.startswith(".") or name in _NAMES


def without_descriptions(files: Sequence[InputFile]) -> tuple[list[InputFile], list[str]]:
    """Return files without those that describe Arrow files next to them, and the paths of these."""
    folders = {_folder(file.path) for file in files if file.path.endswith(".arrow")}
    folders |= {_folder(folder) for folder in folders}  # of a DatasetDict
    described = [
        file.path
        for file in files
        if _folder(file.path) in folders and file.path.rpartition("/")[2] in _DESCRIPTIONS
    ]
    hidden = frozenset(described)
    return [file for file in files if file.path not in hidden], described


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


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
