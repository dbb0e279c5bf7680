"""Inspects an input by the names of all files and the first records of a few."""

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
"""Files whose beginnings are looked at, over all kinds; each kind has one at least."""

_MIN_READ = 0.5
"""Share of the records of a format that a command reads which is given them."""


@dataclass(frozen=True, kw_only=True)
class FileKind:
    """Files with one ending."""

    ending: str
    """As in ".jsonl.zst"; "" for files without one."""
    num_files: int
    num_bytes: int
    heads: tuple[FileHead, ...] = ()
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
class Inspection:
    """The findings about an input."""

    paths: tuple[str, ...]
    """As they were given: one, or several that are one input."""
    kinds: tuple[FileKind, ...]
    """The largest first; those that are not taken last."""
    is_dataset: bool = False
    """It is the folder of a dataset, whose texts are tokens already."""
    refused: dict[str, str] = field(default_factory=dict)
    """Files that cannot be taken at all, and why."""
    remarks: tuple[str, ...] = ()
    """Lines on files that are hidden, missing or there twice."""
    forms: tuple[str, ...] = ()
    """The formats whose records the command reads, the most frequent first."""
    records: tuple[Record, ...] = field(default=(), repr=False)
    fields: tuple[Field, ...] = ()
    text_field: str = ""
    guesses: tuple[Guess, ...] = ()
    languages: dict[str, float] = field(default_factory=dict)
    """Shares of the texts, the most frequent first; empty where no model is installed."""
    files: tuple[InputFile, ...] = field(default=(), repr=False)
    """Those of the formats."""

    @property
    def path(self) -> str:
        """The first path, and how many more there are."""
        more = len(self.paths) - 1
        return self.paths[0] + f" and {more:,} more" * (more > 0)

    @property
    def taken(self) -> list[FileKind]:
        """The kinds that a command reads."""
        return [kind for kind in self.kinds if not kind.untaken]

    @property
    def heads(self) -> list[FileHead]:
        """The files that were looked at, of the kinds that are taken."""
        return [head for kind in self.taken for head in kind.heads]


def inspect_input(*specs: str) -> Inspection:
    """Inspect an input.

    Args:
        specs: As --input takes it; several are one input.

    Raises:
        UserError: There is nothing at all.
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
        # Path.is_file raises where there is no access.
        is_dataset=not is_url(paths[0]) and os.path.isfile(f"{paths[0]}/{NAME}"),  # noqa: PTH113
    )
    return seen if seen.is_dataset else _with_records(seen, listing.files)


def _with_records(seen: Inspection, files: Sequence[InputFile]) -> Inspection:
    """Return a look with the fields of the records, and how a command reads them."""
    sizes = Counter[str]()
    for kind in seen.taken:
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
    endings = {kind.ending for kind in seen.taken if kind.form in forms}
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
    """Return the first record of each file of some formats, then the second ones, and so on."""
    groups = [head.records for head in seen.heads if head.form in forms]
    return [record for same in zip_longest(*groups) for record in same if record]


def _kinds(listing: Listing, is_read: Callable[[str], bool]) -> tuple[FileKind, ...]:
    """Return the kinds of files; if none that a folder's name stands for is read, others are."""
    files: dict[str, list[InputFile]] = {}
    odd = (file for file in listing.refused if not _counts(file, is_read))
    for file in (*listing.files, *odd):
        files.setdefault(ending_of(file.relative), []).append(file)
    taken = {ending for ending, of in files.items() if is_read(of[0].relative)}
    each = max(1, MAX_HEADS // max(1, len(taken)))
    kinds = [
        _kind(ending, of, heads=each if ending in taken else 0) for ending, of in files.items()
    ]
    if not any(kind.form for kind in kinds if not kind.untaken):
        kinds = [replace(kind, untaken="") if kind.form else kind for kind in kinds]
    return tuple(sorted(kinds, key=lambda kind: (bool(kind.untaken), -kind.num_bytes)))


def _kind(ending: str, files: Sequence[InputFile], *, heads: int) -> FileKind:
    """Return the kind of files with an ending; without heads a folder's name leaves them out."""
    kind = FileKind(
        ending=ending, num_files=len(files), num_bytes=sum(file.bytes for file in files)
    )
    if heads:
        return replace(kind, heads=tuple(map(inspect_file, _spread(files, heads))))
    first = files[0]
    if ending.lower() in TABLES:
        return replace(kind, untaken=f"not taken from a folder. {FROM_TABLES}")
    head = inspect_file(first) if first.bytes else FileHead(file=first)
    why = "a glob reads them" if head.records else head.hint or head.conversion
    why = why or "no ending of a format that is read"
    return replace(kind, heads=(head,), untaken=f"not taken from a folder: {why}")


def _counts(file: InputFile, is_read: Callable[[str], bool]) -> bool:
    """Return whether something that cannot be read is of a kind that is: folders may be."""
    return file.path.endswith("/") or is_read(file.relative)


def _remarks(listing: Listing, is_read: Callable[[str], bool]) -> Iterator[str]:
    """Yield the lines that a run would log about the listing, except for files of other kinds."""
    yield from left_out((), listing.hidden)
    yield from gaps((*listing.files, *listing.refused), searched=listing.searched)
    yield from copies(file for file in listing.files if is_read(file.relative))


def _is_folder(paths: Sequence[str], files: Sequence[InputFile]) -> bool:
    path, *others = paths
    if others or is_hub_dataset(path) or glob.has_magic(path):
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
