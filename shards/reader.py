"""Opens a dataset: tokens and documents as they are on disk, memory-mapped and never copied.

The files that a manifest names stay for a while after another manifest replaced it
(maintenance/prune.py), so that a process that reads them can continue.
"""

import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, SupportsIndex, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shards.commands.output import quantity, visible_line
from shards.commands.spelling import expected
from shards.commands.table import called
from shards.errors import DamageError, UserError
from shards.format import ARROW, BIN, REQUIRED, SUFFIXES, Tokens, shard_file
from shards.manifest import (
    TRAIN,
    VALIDATION,
    Manifest,
    ShardEntry,
    parse_dataset,
    read_manifest,
    sum_shards,
)
from shards.removals import Rows, removed_rows
from shards.storage.arrow import (
    check_buffers,
    check_string_offsets,
    check_values,
    open_reader,
    reraise_as_damage,
)
from shards.storage.files import check_size, map_bytes
from shards.storage.remote import AnyPath, relative
from shards.summary import summary_html
from shards.vocabulary import Vocabulary

_REQUIRED = [(column.name, column.type) for column in REQUIRED]


def _no_rows() -> Rows:
    return np.empty(0, np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Shard:
    """An open shard; unpickling a shard opens the same files again."""

    directory: AnyPath
    """The dataset's folder."""
    entry: ShardEntry
    tokens: Tokens = field(repr=False)
    """All tokens, memory-mapped."""
    documents: pa.Table = field(repr=False)
    """A row per document, memory-mapped; every column is one chunk. The lengths of columns are
    checked; `value` and `column` also check that strings are within the file."""
    offsets: NDArray[np.int64] = field(repr=False)
    """First token of each document, memory-mapped and aligned; the previous document ends there."""
    removed: Rows = field(default_factory=_no_rows)
    """Rows that training windows leave out; they can still be read as documents."""

    @classmethod
    def open(
        cls,
        directory: AnyPath,
        entry: ShardEntry,
        *,
        dtype: np.dtype[Any],
        removed: Rows | None = None,
    ) -> "Shard":
        """Return the shard of an entry, after checking the sizes of its files.

        Raises:
            DamageError: a file is missing, or is not the one that the manifest names.
        """
        paths = {suffix: shard_file(directory / entry.path, suffix) for suffix in SUFFIXES}
        content = {
            suffix: _map_file(path, expected=entry.files[suffix].bytes)
            for suffix, path in paths.items()
        }
        if content[BIN].size != entry.tokens * dtype.itemsize:
            raise DamageError(
                f"{paths[BIN]} has {content[BIN].size:,} bytes, which are not {entry.tokens:,} "
                f"tokens of {dtype}: the manifest contradicts itself. Build the dataset again."
            )
        documents = _documents(content[ARROW], paths[ARROW], entry.documents)
        return cls(
            directory=directory,
            entry=entry,
            tokens=content[BIN].view(dtype),
            documents=documents,
            offsets=documents["offset"].chunk(0).to_numpy(zero_copy_only=True),
            removed=_no_rows() if removed is None else removed,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Memory-mapped data would be pickled as a copy: a loader's worker maps the files itself.
        reopen = partial(Shard.open, dtype=self.tokens.dtype, removed=self.removed)
        return reopen, (self.directory, self.entry)

    def file(self, suffix: str) -> AnyPath:
        """Return the path of one of the shard's files."""
        return shard_file(self.directory / self.entry.path, suffix)

    @cached_property
    def prompts(self) -> NDArray[np.int32]:
        """Number of leading tokens of each document that have no loss; memory-mapped."""
        column: NDArray[np.int32] = self.documents["prompt_tokens"].chunk(0).to_numpy()
        return column

    @cached_property
    def lengths(self) -> NDArray[np.int32]:
        """Number of tokens of each document, memory-mapped; offset plus length is the end."""
        column: NDArray[np.int32] = self.documents["tokens"].chunk(0).to_numpy()
        return column

    @cached_property
    def ids(self) -> NDArray[np.unsignedinteger[Any]]:
        """All tokens as unsigned integers, memory-mapped; a negative one exceeds any vocabulary."""
        return self.tokens.view(f"u{self.tokens.itemsize}")

    @cached_property
    def is_unmasked(self) -> bool:
        """Whether every token carries loss (no prompts or removals); reads 4 bytes per document."""
        return not len(self.removed) and not self.prompts.any()

    def __len__(self) -> int:
        return self.entry.documents

    def __getitem__(self, row: int) -> Tokens:
        """Return the tokens of a document, including its final eos, as a view of the file."""
        if not 0 <= row < len(self):
            raise IndexError(f"{self.entry.path} has {len(self)} documents, no document {row}")
        start, length = int(self.offsets[row]), int(self.lengths[row])
        end = int(self.offsets[row + 1]) if row + 1 < len(self) else self.entry.tokens
        if not 0 <= start <= end or end - start != length:
            what = f"document {row} has {length} tokens, but its offsets are {start} to {end}"
            raise self.damage(ARROW, what)
        return self.tokens[start:end]

    def check_lengths(self) -> None:
        """Check that the lengths of all documents add up to the tokens of the shard.

        Raises:
            DamageError: the lengths do not add up.
        """
        total = int(self.lengths.sum(dtype=np.int64))
        if total != self.entry.tokens or self.lengths.min(initial=0) < 0:
            what = f"its documents have {total:,} tokens, the shard {self.entry.tokens:,}"
            raise self.damage(ARROW, what)

    def damage(self, suffix: str, what: str) -> DamageError:
        """Return the error for a file of the shard that contradicts itself or another file."""
        return DamageError(
            f"{self.file(suffix)} is damaged: {what}. {called('shards verify')} {self.directory} "
            "lists all damaged files; restore them from a copy, or build the dataset again."
        )

    def value(self, name: str, row: int) -> Any:
        """Return the value of a column in a row, as a Python value.

        Raises:
            DamageError: the value cannot be read, because the file was damaged.
        """
        cell = check_values(self.documents[name].slice(row, 1), self.file(ARROW))
        return cell[0].as_py()

    def column(self, name: str, *, limit: int | None = None) -> pa.ChunkedArray:
        """Return a column, or its first rows, after reading and checking all values.

        Raises:
            DamageError: a value cannot be read, because the file was damaged.
        """
        return check_values(self.documents[name].slice(0, limit), self.file(ARROW))

    def value_counts(self, name: str, *, limit: int | None = None) -> dict[Any, int]:
        """Return how often each value occurs in a column; {} if there is no such column."""
        if name not in self.documents.column_names:
            return {}
        with reraise_as_damage(self.file(ARROW)):
            counted = pc.value_counts(self.column(name, limit=limit)).to_pylist()
        return {item["values"]: item["counts"] for item in counted}


def _map_file(path: AnyPath, *, expected: int) -> NDArray[np.uint8]:
    content = map_bytes(path)
    check_size(path, content.size, expected=expected)
    return content


def _documents(content: NDArray[np.uint8], path: AnyPath, num_documents: int) -> pa.Table:
    reader = open_reader(content, path)
    with reraise_as_damage(path):
        batches = [check_buffers(reader.get_batch(i)) for i in range(reader.num_record_batches)]
        if [len(batch) for batch in batches] != [num_documents]:
            rows = sum(len(batch) for batch in batches)
            raise ValueError(
                f"it has {rows:,} rows in {len(batches)} batches, the manifest says "
                f"{num_documents:,} rows in one batch"
            )
        (batch,) = batches
        required = [(column.name, column.type) for column in batch.schema][: len(REQUIRED)]
        if required != _REQUIRED or any(batch[name].null_count for name in REQUIRED.names):
            raise ValueError(f"it does not begin with the columns {REQUIRED.names} without nulls")
    return pa.Table.from_batches(batches)


class Documents:
    """The documents of some shards as one sequence, without removed documents.

    A shard is opened when it is first needed.
    """

    def __init__(self, dataset: "Dataset", entries: Sequence[ShardEntry]) -> None:
        self._dataset = dataset
        left = [entry.documents - len(dataset.removed.get(entry.path, ())) for entry in entries]
        self._ends = np.cumsum(left, dtype=np.int64)
        self._open: dict[int, Shard] = {}
        self.entries = tuple(entries)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def shard(self, index: int) -> Shard:
        """Return the shard of `entries[index]`, which is opened only once."""
        if index not in self._open:
            self._open[index] = self._dataset.shard(self.entries[index])
        return self._open[index]

    def shards(self) -> Iterator[Shard]:
        """Yield every shard in order, without keeping them open."""
        for entry in self.entries:
            yield self._dataset.shard(entry)

    def locate(self, number: int) -> tuple[Shard, int]:
        """Return the shard of a document and its row in that shard.

        Raises:
            IndexError: there is no such document.
        """
        if not 0 <= number < len(self):
            raise IndexError(f"there is no document {number}: there are {len(self)}")
        index = int(np.searchsorted(self._ends, number, side="right"))
        shard = self.shard(index)
        left = number - (int(self._ends[index - 1]) if index else 0)
        # Before removed row i, counted from 0, there are removed[i] - i rows that are left.
        before = shard.removed - np.arange(len(shard.removed))
        return shard, left + int(np.searchsorted(before, left, side="right"))

    @overload
    def __getitem__(self, number: SupportsIndex) -> Tokens: ...

    @overload
    def __getitem__(self, number: slice) -> list[Tokens]: ...

    def __getitem__(self, number: SupportsIndex | slice) -> Tokens | list[Tokens]:
        """Return the tokens of a document, or of each document of a slice, as views of the files.

        A number below 0 counts from the end.

        Raises:
            IndexError: there is no such document.
        """
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        place = operator.index(number)
        shard, row = self.locate(place + len(self) if -len(self) <= place < 0 else place)
        return shard[row]

    def __iter__(self) -> Iterator[Tokens]:
        for shard in self.shards():
            rows = np.delete(np.arange(len(shard)), shard.removed)
            yield from (shard[row] for row in rows.tolist())


class Dataset:
    """A dataset at one number of its manifest."""

    def __init__(self, directory: AnyPath, manifest: Manifest) -> None:
        self.directory = directory
        self.manifest = manifest

    @property
    def shown_directory(self) -> str:
        """The dataset's folder as messages show it: relative if below the working directory."""
        with suppress(ValueError, OSError):
            return relative(self.directory, Path.cwd())
        return str(self.directory)

    def __repr__(self) -> str:
        train, validation = (
            sum_shards(self.manifest.shards(split=split)) for split in (TRAIN, VALIDATION)
        )
        return visible_line(
            f"Dataset({self.shown_directory!r}, manifest {self.manifest.number}: "
            f"{quantity(train.documents, 'document')}, {train.tokens:,} tokens, validation "
            f"{validation.documents:,}, sources {', '.join(self.sources) or 'none'})"
        )

    def _repr_html_(self) -> str:
        return summary_html(self.manifest, self.shown_directory)

    @classmethod
    def open(cls, path: str | AnyPath) -> "Dataset":
        """Open the dataset in `DIR`, or with `DIR@n` as it was at manifest number n.

        Raises:
            UserError: there is no dataset, or no such number.
            DamageError: its manifest is damaged.
        """
        directory, number = parse_dataset(path)
        manifest = read_manifest(directory)
        return cls(directory, manifest if number is None else manifest.as_of(number))

    def as_of(self, number: int) -> "Dataset":
        """Return the dataset as it was at an earlier number.

        Raises:
            UserError: there is no such number.
        """
        return Dataset(self.directory, self.manifest.as_of(number))

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources, sorted."""
        return self.manifest.sources()

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The bytes and flags of all tokens."""
        entry = self.manifest.vocabulary
        return Vocabulary.open(self.directory / entry.path, entry)

    @cached_property
    def removed(self) -> Mapping[str, Rows]:
        """The removed rows by the path of their shard's entry."""
        return removed_rows(self.directory, self.manifest)

    def table(self, entry: ShardEntry) -> pa.Table:
        """Return the documents of one of the dataset's shards without opening its tokens.

        The strings are checked to be within the file, but not to be text. For files
        that were already compared with the manifest use `mapped_table`.

        Raises:
            DamageError: the file is missing or damaged.
        """
        path = shard_file(self.directory / entry.path, ARROW)
        return check_string_offsets(self.mapped_table(entry), path)

    def mapped_table(self, entry: ShardEntry) -> pa.Table:
        """Return the same as `table`, but only memory-map the file, which must be whole.

        Raises:
            DamageError: the file is missing, or the number of rows differs from the manifest.
        """
        path = shard_file(self.directory / entry.path, ARROW)
        return _documents(map_bytes(path), path, entry.documents)

    def rows(self, entry: ShardEntry, rows: Rows, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return rows of the table of a shard, with those of the named columns that exist.

        Raises:
            DamageError: the file is missing or damaged.
        """
        path = shard_file(self.directory / entry.path, ARROW)
        table = self.table(entry)
        table = table.select([name for name in names if name in table.column_names])
        with reraise_as_damage(path):
            return list(check_values(table.take(rows), path).to_pylist())

    def shard(self, entry: ShardEntry) -> Shard:
        """Open one of the dataset's shards, with its removed rows.

        Raises:
            DamageError: a file is missing, or is not the one that the manifest names.
        """
        dtype = self.manifest.tokenizer.token_dtype
        removed = self.removed.get(entry.path)
        return Shard.open(self.directory, entry, dtype=dtype, removed=removed)

    def check_source(self, source: str | None) -> None:
        """Check that the dataset has a source; None stands for all sources.

        Raises:
            UserError: the dataset has no such source.
        """
        if source is not None and source not in self.sources:
            raise UserError(
                f"{self.directory} has no source {source!r}: {expected(source, self.sources)}."
            )

    def documents(self, source: str | None = None, *, split: str = TRAIN) -> Documents:
        """Return the documents of one source or of all sources, by generation, source and shard.

        Raises:
            UserError: there is no such source.
        """
        self.check_source(source)
        return Documents(self, self.manifest.shards(source, split=split))
