"""What an input is, going by the names of all files and the first records of a few."""

import glob
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import Path, PurePosixPath

from pipelines.corpus.guess import Guess, guesses
from pipelines.filters.langid import AUTO, installed_model, load_identifier
from pipelines.inputs.endings import FROM_TABLES, TEXT_FILES
from pipelines.inputs.files import InputFile, Listing, input_paths, list_inputs
from pipelines.inputs.hub import is_hub_dataset
from pipelines.look.heads import Head, foreign, look_at
from pipelines.readers.compressed import SUFFIXES
from pipelines.readers.fields import Field, fields_of, text_field
from pipelines.readers.record import Record
from shards.errors import UserError
from shards.manifest import NAME
from shards.storage.address import is_url

MOST_HEADS = 8
"""Files whose beginnings are looked at, over all kinds; each kind has one at least."""

_TABLES = (".csv", ".tsv")
_NO_ENDING = re.compile(r"\s|\d\d|.{12}")
"""What stands after a dot in names such as part.00017."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Files with one ending."""

    ending: str
    """As in ".jsonl.zst"; "" for files without one."""
    num_files: int
    num_bytes: int
    heads: tuple[Head, ...] = ()
    """Of some of them."""
    untaken: str = ""
    """Why a command that is given the folder leaves them out."""

    @property
    def form(self) -> str:
        """The format of most of them; "" if none could be read."""
        forms = Counter(head.form for head in self.heads if head.records)
        return max(forms, key=forms.__getitem__, default="")

    @property
    def records(self) -> float:
        """Return how many records there are, about."""
        looked_at = sum(head.file.bytes for head in self.heads)
        return sum(head.estimate for head in self.heads) * self.num_bytes / max(1, looked_at)


@dataclass(frozen=True, kw_only=True)
class Look:
    """What an input is."""

    path: str
    """As it was given."""
    kinds: tuple[Kind, ...]
    """The largest first; those that are not taken last."""
    is_dataset: bool = False
    """It is the folder of a dataset, whose texts are tokens already."""
    refused: dict[str, str] = field(default_factory=dict)
    """Files that cannot be taken at all, and why."""
    form: str = ""
    """The format whose records were looked at."""
    records: tuple[Record, ...] = field(default=(), repr=False)
    fields: tuple[Field, ...] = ()
    text_field: str = ""
    guesses: tuple[Guess, ...] = ()
    languages: dict[str, float] = field(default_factory=dict)
    """Shares of the texts, the most frequent first; empty where no model is installed."""
    files: tuple[InputFile, ...] = field(default=(), repr=False)
    """Those of the format."""

    @property
    def taken(self) -> list[Kind]:
        """The kinds that a command takes which is given the path."""
        return [kind for kind in self.kinds if not kind.untaken]

    @property
    def heads(self) -> list[Head]:
        """All files that were looked at."""
        return [head for kind in self.kinds for head in kind.heads]


def look(spec: str) -> Look:
    """Return what an input is.

    Args:
        spec: As --input takes it.

    Raises:
        UserError: There is nothing at all.
    """
    (path,) = input_paths([spec])
    listing = list_inputs([spec], pattern="*", default_name="input")
    kinds = _kinds(path, listing)
    seen = Look(
        path=path,
        kinds=kinds,
        refused={file.path: why for file, why in listing.refused.items()},
        is_dataset=not is_url(path) and (Path(path) / NAME).is_file(),
    )
    forms = Counter[str]()
    for kind in kinds:
        forms[kind.form] += kind.num_bytes
    del forms[""]
    if not forms or seen.is_dataset:
        return seen
    form = forms.most_common(1)[0][0]
    endings = {kind.ending for kind in kinds if kind.form == form}
    groups = [head.records for head in seen.heads if head.form == form]
    # The first record of each file, then the second ones, and so on.
    records = [record for same in zip_longest(*groups) for record in same if record]
    fields = fields_of(records)
    name = text_field(fields)
    found = guesses(records, form=form, text_field=name, path=path)
    return replace(
        seen,
        form=form,
        records=tuple(records),
        fields=tuple(fields),
        text_field=name,
        guesses=tuple(found),
        languages=_languages(found[0].texts if found else ()),
        files=tuple(file for file in listing.files if ending_of(file.relative) in endings),
    )


def ending_of(relative: str) -> str:
    """Return the ending of a file's name, with that of its compression; "" if it has none."""
    name = PurePosixPath(relative).name
    packed = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")
    inner = PurePosixPath(name.removesuffix(packed)).suffix
    return ("" if _NO_ENDING.search(inner) else inner) + packed


def matches(file: InputFile, patterns: Sequence[str]) -> bool:
    """Return whether the name of a file matches one of some patterns."""
    name = PurePosixPath(file.relative).name
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _kinds(path: str, listing: Listing) -> tuple[Kind, ...]:
    files: dict[str, list[InputFile]] = {}
    for file in listing.files:
        files.setdefault(ending_of(file.relative), []).append(file)
    untaken = {
        ending: _why_untaken(of[0])
        for ending, of in files.items()
        if _is_folder(path, listing.files) and not matches(of[0], TEXT_FILES)
    }
    each = max(1, MOST_HEADS // max(1, len(files) - len(untaken)))
    kinds = [
        Kind(
            ending=ending,
            num_files=len(of),
            num_bytes=sum(file.bytes for file in of),
            heads=() if ending in untaken else tuple(map(look_at, _spread(of, each))),
            untaken=untaken.get(ending, ""),
        )
        for ending, of in files.items()
    ]
    return tuple(sorted(kinds, key=lambda kind: (bool(kind.untaken), -kind.num_bytes)))


def _why_untaken(file: InputFile) -> str:
    if file.path.lower().endswith(_TABLES):
        return f"not taken from a folder. {FROM_TABLES}"
    what = foreign(file.path)
    return f"not taken from a folder: {what or 'no ending of a format that is read'}"


def _is_folder(path: str, files: Sequence[InputFile]) -> bool:
    if is_hub_dataset(path) or glob.has_magic(path):
        return False
    if is_url(path):
        return len(files) != 1 or not files[0].path.endswith(path.rpartition("/")[2] or "/")
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises where there is no access


def _spread(files: Sequence[InputFile], number: int) -> list[InputFile]:
    number = min(number, len(files))
    return [files[index * len(files) // number] for index in range(number)]


def _languages(texts: Sequence[str]) -> dict[str, float]:
    try:
        if not texts or not installed_model().is_file():
            return {}
        labels, _ = load_identifier(chars=AUTO).identify(texts)
    except (UserError, ImportError):
        return {}
    return {label: number / len(texts) for label, number in Counter(labels).most_common()}
