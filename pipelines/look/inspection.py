"""Inspects an input: the names of all files, and the first records of a few."""

import glob
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from pipelines.corpus.guess import Guess, guess_corpora, read_share
from pipelines.look.file_head import FileHead, inspect_file
from pipelines.read.fields import Field, fields_of, text_field
from pipelines.read.files import InputFile, input_paths, list_inputs
from pipelines.read.hub import is_hub_dataset
from pipelines.read.listing import Listing
from pipelines.read.names import FROM_TABLES, TABLES, TEXT_FILES, ending_of, matcher
from pipelines.read.record import Record
from pipelines.read.remarks import copies, gaps, left_out
from pipelines.steps.langid import AUTO, installed_model, load_identifier
from shards.errors import UserError
from shards.manifest import NAME
from shards.storage.address import is_url

MAX_HEADS = 8
"""The maximum number of files whose beginnings are read; if there are more kinds of files, one file
per kind is read."""

_MIN_READ = 0.5
"""The minimum share of a format's records that a corpus must read to be given the files of that
format."""


@dataclass(frozen=True, kw_only=True)
class FileKind:
    """The files with one extension."""

    ending: str
    """The extension, for example ".jsonl.zst"; "" if the files have none."""
    num_files: int
    num_bytes: int
    heads: tuple[FileHead, ...] = ()
    """The findings about some of the files."""
    why_skipped: str = ""
    """The reason why a run on the folder leaves the files out; "" if it reads them."""

    @property
    def form(self) -> str:
        """The format of most files; "" if none could be read."""
        forms = Counter(head.form for head in self.heads if head.records)
        return max(forms, key=forms.__getitem__, default="")

    @property
    def records(self) -> float:
        """The estimated number of records."""
        looked_at = sum(head.file.bytes for head in self.heads)
        return sum(head.estimate for head in self.heads) * self.num_bytes / max(1, looked_at)


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """The findings about an input."""

    paths: tuple[str, ...]
    """The path, or several that are one input, as the user gave them."""
    kinds: tuple[FileKind, ...]
    """The kinds of files: first the kinds that are read, then the remaining kinds, each by
    decreasing size."""
    is_dataset: bool = False
    """Whether the input is the folder of a dataset, which contains tokens instead of texts."""
    refused: dict[str, str] = field(default_factory=dict)
    """The files that cannot be opened, with the reasons."""
    remarks: tuple[str, ...] = ()
    """Remarks on files that are hidden, missing or present twice."""
    forms: tuple[str, ...] = ()
    """The formats whose records the suggested command reads, the most frequent first."""
    records: tuple[Record, ...] = field(default=(), repr=False)
    """The first records of the inspected files whose formats are in `forms`."""
    fields: tuple[Field, ...] = ()
    text_field: str = ""
    """The field that most resembles text; "" if no field does."""
    guesses: tuple[Guess, ...] = ()
    """The corpora that can read the records, the best first."""
    languages: dict[str, float] = field(default_factory=dict)
    """The share of texts by language, the largest first; empty if no model is installed."""
    files: tuple[InputFile, ...] = field(default=(), repr=False)
    """The files whose formats are in `forms`."""

    @property
    def path(self) -> str:
        """The first path, and the number of the remaining paths."""
        more = len(self.paths) - 1
        return self.paths[0] + f" and {more:,} more" * (more > 0)

    @property
    def read_kinds(self) -> list[FileKind]:
        """The kinds of files that a run reads."""
        return [kind for kind in self.kinds if not kind.why_skipped]

    @property
    def heads(self) -> list[FileHead]:
        """The findings about files of the kinds that a run reads."""
        return [head for kind in self.read_kinds for head in kind.heads]


def inspect_input(*specs: str) -> Inspection:
    """Inspect an input.

    Args:
        specs: The input, as for --input; several files are one input.

    Raises:
        UserError: The input does not exist or contains no files.
    """
    paths = input_paths(specs)
    listing = list_inputs(specs, pattern="*", default_name="input")
    if not listing.files and all(file.path.endswith("/") for file in listing.refused):
        listing.check()
    is_read = matcher(TEXT_FILES if _is_folder(paths, listing.files) else ("*",))
    kinds = _kinds(listing, is_read)
    seen = Inspection(
        paths=tuple(paths),
        kinds=kinds,
        refused={file.path: why for file, why in listing.refused.items() if _counts(file, is_read)},
        remarks=tuple(_remarks(listing, is_read)),
        # Path.is_file raises if permission is denied.
        is_dataset=not is_url(paths[0]) and os.path.isfile(f"{paths[0]}/{NAME}"),  # noqa: PTH113
    )
    return seen if seen.is_dataset else _with_records(seen, listing.files)


def _with_records(seen: Inspection, files: Sequence[InputFile]) -> Inspection:
    """Return an inspection, completed with the records, their fields and the corpora that fit."""
    sizes = Counter[str]()
    for kind in seen.read_kinds:
        sizes[kind.form] += kind.num_bytes
    del sizes[""]
    if not sizes:
        return seen
    forms = [form for form, _ in sizes.most_common()]
    records = {form: _records(seen, [form]) for form in forms}
    fields = fields_of(records[forms[0]])
    name = text_field(fields)
    found = guess_corpora(records[forms[0]], forms=forms[:1], text_field=name, path=seen.path)
    if found and len(forms) > 1:
        best = found[0]
        others = [form for form in forms[1:] if read_share(best, records[form]) >= _MIN_READ]
        forms = [forms[0], *others]
        found = guess_corpora(_records(seen, forms), forms=forms, text_field=name, path=seen.path)
    endings = {kind.ending for kind in seen.read_kinds if kind.form in forms}
    return replace(
        seen,
        forms=tuple(forms),
        records=tuple(_records(seen, forms)),
        fields=tuple(fields_of(_records(seen, forms))),
        text_field=name,
        guesses=tuple(found),
        languages=_languages(found[0].texts if found else ()),
        files=tuple(file for file in files if ending_of(file.relative) in endings),
    )


def _records(seen: Inspection, forms: Sequence[str]) -> list[Record]:
    """Return the first records of all files in some formats, then the second records, and so on."""
    groups = [head.records for head in seen.heads if head.form in forms]
    return [record for same in zip_longest(*groups) for record in same if record]


def _kinds(listing: Listing, is_read: Callable[[str], bool]) -> tuple[FileKind, ...]:
    """Return the kinds of files; if a run could read none, count all readable kinds as read."""
    files: dict[str, list[InputFile]] = {}
    odd = (file for file in listing.refused if not _counts(file, is_read))
    for file in (*listing.files, *odd):
        files.setdefault(ending_of(file.relative), []).append(file)
    taken = {ending for ending, of in files.items() if is_read(of[0].relative)}
    each = max(1, MAX_HEADS // max(1, len(taken)))
    kinds = [
        _kind(ending, of, heads=each if ending in taken else 0) for ending, of in files.items()
    ]
    if not any(kind.form for kind in kinds if not kind.why_skipped):
        kinds = [replace(kind, why_skipped="") if kind.form else kind for kind in kinds]
    return tuple(sorted(kinds, key=lambda kind: (bool(kind.why_skipped), -kind.num_bytes)))


def _kind(ending: str, files: Sequence[InputFile], *, heads: int) -> FileKind:
    """Return the kind of files that have an extension; if `heads` is 0, a run skips the files."""
    kind = FileKind(
        ending=ending, num_files=len(files), num_bytes=sum(file.bytes for file in files)
    )
    if heads:
        return replace(kind, heads=tuple(map(inspect_file, _spread(files, heads))))
    first = files[0]
    if ending.lower() in TABLES:
        return replace(kind, why_skipped=f"not read from a folder. {FROM_TABLES}")
    head = inspect_file(first) if first.bytes else FileHead(file=first)
    why = "a glob reads them" if head.records else head.hint or head.conversion
    why = why or "unknown extension"
    return replace(kind, heads=(head,), why_skipped=f"not read from a folder: {why}")


def _counts(file: InputFile, is_read: Callable[[str], bool]) -> bool:
    """Return whether a run would include an unreadable file; a folder may contain such files."""
    return file.path.endswith("/") or is_read(file.relative)


def _remarks(listing: Listing, is_read: Callable[[str], bool]) -> Iterator[str]:
    """Yield the remarks that a run would log, except on files that the run does not read."""
    yield from left_out((), listing.hidden)
    yield from gaps((*listing.files, *listing.refused), searched=listing.searched)
    yield from copies(file for file in listing.files if is_read(file.relative))


def _is_folder(paths: Sequence[str], files: Sequence[InputFile]) -> bool:
    path, *others = paths
    if others or is_hub_dataset(path) or glob.has_magic(path):
        return False
    if is_url(path):
        return len(files) != 1 or not files[0].path.endswith(path.rpartition("/")[2] or "/")
    return os.path.isdir(path)  # noqa: PTH112 - without permission, Path.is_dir raises


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
