"""Makes toy corpora: a few files or documents of WuDao, the same ones every time.

    python -m pipelines.cp_wudao 4                   copy files until build/toy has four
    python -m pipelines.cp_wudao --documents 1000    the thousand documents with the smallest hashes
    python -m pipelines.cp_wudao --fraction 1%       the documents of pipelines.wudao --sample 1%

The choice depends only on names, positions and the seed. A larger choice contains every smaller
one. Nothing is deleted, and existing files are not changed.
"""

import hashlib
import heapq
import itertools
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from pipelines.corpus.spec import SAMPLE
from pipelines.job.output import check_apart
from pipelines.read.files import InputFile, input_paths, match_inputs, open_input
from pipelines.read.formats import open_reader
from pipelines.read.input_format import InputFormat
from pipelines.read.record import Record
from pipelines.read.split import split_file
from pipelines.segments.identity import hash_bound, sample_hashes
from pipelines.wudao import PATTERN
from shards.commands.command import Command, log_plainly
from shards.commands.flags import (
    WORD,
    MutuallyExclusive,
    count,
    fraction,
    local_path,
    option,
    positive,
)
from shards.commands.output import print_line, print_message, quantity
from shards.commands.table import called
from shards.console import run_module
from shards.errors import UserError
from shards.storage.files import atomic_write, crc32c

_BLOCK_BYTES = 4 << 20
_BATCH = 1 << 16


class RecordPlace(NamedTuple):
    """The place of a record; places are ordered by the records' hashes."""

    hash: int
    """The sample hash of the record."""
    file: int
    """The index of the file."""
    offset: int
    length: int


@dataclass(kw_only=True)
class PickCounts:
    """The numbers of records and of damaged places that were read."""

    records: int = 0
    damages: int = 0
    """The number of places where a record should be but is not."""


@dataclass(frozen=True, kw_only=True)
class CopyWudao(Command):
    """Copy a few files or documents of WuDao, always the same ones."""

    _WHICH = MutuallyExclusive(required=True)

    files: int | None = option(
        None, exclusive=_WHICH, flag=WORD, nargs="?", type=positive, metavar="N"
    )
    """Number of files to make."""
    documents: int | None = option(None, exclusive=_WHICH, type=positive, metavar="N")
    """Copy the N documents with the smallest sample hashes."""
    fraction: float = option(0.0, exclusive=_WHICH, type=fraction, metavar="F")
    """Copy the documents that pipelines.wudao --sample F uses (0.01 or 1%)."""
    input: str = option(str(SAMPLE / PATTERN), metavar="PATH")
    """Folder, file or glob to copy from; NAME=PATH names it."""
    output: Path = option(Path("build/toy"), type=local_path, metavar="DIR")
    """Folder of the copy. Default: build/toy."""
    seed: int = option(0, type=count, metavar="N")
    """Seed of the choice."""

    def run(self) -> None:
        """Copy the requested files and print the closing line.

        Raises:
            UserError: A file cannot be read or written.
        """
        log_plainly()
        for path in input_paths([self.input]):
            check_apart(path, self.output)
        files = match_inputs([self.input], pattern=PATTERN, default_name="wudao")
        _check_names(files)
        if self.files is not None:
            done = copy_files(files, self.output, wanted=self.files, seed=self.seed)
        else:
            done = copy_documents(
                files,
                self.output,
                number=self.documents,
                share=self.fraction,
                seed=self.seed,
            )
        where = shlex.quote(str(self.output))
        print_line(f"{done}; next: {called('wudao')} --input {where} --tokenizer ...")


def copy_files(files: Sequence[InputFile], output: Path, *, wanted: int, seed: int) -> str:
    """Copy files until the output has `wanted` files, and return a line about it."""
    present = _present(output)
    rest = [file for file in files if file.relative not in present]
    chosen = sorted(rest, key=lambda file: _rank(file.relative, seed))
    chosen = chosen[: max(0, wanted - len(present))]
    for done, file in enumerate(chosen):
        _progress(file, done, len(chosen))
        with open_input(file.path) as source, atomic_write(output / file.relative) as handle:
            while block := source.read(_BLOCK_BYTES):
                handle.write(block)
    holding = _holding(output)
    if len(present) + len(chosen) < wanted:
        return f"{holding}, which is all of them ({wanted} were requested)"
    return f"{holding} ({len(chosen)} copied, {len(present)} there before)"


def copy_documents(
    files: Sequence[InputFile],
    output: Path,
    *,
    number: int | None,
    share: float,
    seed: int,
) -> str:
    """Copy the documents with the smallest sample hashes, and return a line about the output.

    Args:
        files: The files to read.
        output: The folder that the documents are written to, in files with the original names.
        number: How many documents to take; None to take a share.
        share: The share of documents to take, if `number` is None.
        seed: Seed of the sample hash.

    Raises:
        UserError: The output contains different documents, or no document would be copied.
    """
    present = _present(output)
    foreign = sorted(present - {file.relative for file in files})
    if foreign:
        raise UserError(
            f"{output} contains {foreign[0]}, which this input does not have; remove it or choose "
            "another --output."
        )
    counts = PickCounts()
    least = None if number is None else pick_least(files, number, seed=seed, counts=counts)
    taken, limit = 0, hash_bound(share)
    for index, file in enumerate(files):
        _progress(file, index, len(files))
        if least is None:
            found = _places(file, index, seed=seed, counts=counts)
            places = [place for place in found if place.hash < limit]
        else:
            places = least[index]
        if places or file.relative in present:
            write_picked(file, places, output / file.relative)
        taken += len(places)
    if not taken:
        raise UserError(
            f"None of the {counts.records} documents is in the share; give a larger --fraction."
        )
    notes = [f"{quantity(taken, 'document')} in {_holding(output)}"]
    if taken < (number or 0):
        notes.append(f"all of them ({number} were requested)")
    if counts.damages:
        notes.append(f"{quantity(counts.damages, 'damaged place')} left out")
    return ", ".join(notes)


def pick_least(
    files: Sequence[InputFile], number: int, *, seed: int, counts: PickCounts
) -> list[list[RecordPlace]]:
    """Return, for each file, its records among the `number` with the smallest sample hashes.

    The records of a file are in the order of the file. If records have equal hashes, the first one
    is chosen.
    """
    places = (_places(file, index, seed=seed, counts=counts) for index, file in enumerate(files))
    by_file: list[list[RecordPlace]] = [[] for _ in files]
    for place in heapq.nsmallest(number, itertools.chain.from_iterable(places)):
        by_file[place.file].append(place)
    return [sorted(chosen, key=lambda place: place.offset) for chosen in by_file]


def write_picked(file: InputFile, places: Sequence[RecordPlace], path: Path) -> None:
    """Write the records at some places of a file as a JSON array, each with its original bytes.

    Raises:
        UserError: `path` exists with different content, which is not changed.
    """
    with atomic_write(path) as handle, open_input(file.path) as source:
        handle.write(b"[")
        before = b"\n"
        for place in places:
            source.seek(place.offset)
            handle.write(before + source.read(place.length))
            before = b",\n"
        handle.write(b"\n]\n")
        if path.exists() and crc32c(path) != handle.entry.crc32c:
            raise UserError(
                f"{path} already exists with other documents; remove the folder or choose another "
                "--output."
            )


def _places(file: InputFile, index: int, *, seed: int, counts: PickCounts) -> Iterator[RecordPlace]:
    """Yield the places of all records of a file."""
    (split,) = split_file(file, file.bytes, form="json")
    # Only places are needed, and each file is one split, so no text field is required.
    reader = iter(open_reader(split, InputFormat()))
    while items := list(itertools.islice(reader, _BATCH)):
        spans = [(item.offset, item.length) for item in items if isinstance(item, Record)]
        counts.records += len(spans)
        counts.damages += len(items) - len(spans)
        offsets = np.array([offset for offset, _ in spans], np.int64)
        hashes = sample_hashes(file.source, file.relative, offsets, seed=seed).tolist()
        for value, (offset, length) in zip(hashes, spans, strict=True):
            yield RecordPlace(value, index, offset, length)


def _rank(relative: str, seed: int) -> bytes:
    return hashlib.blake2b(f"{seed}\0{relative}".encode(), digest_size=16).digest()


def _present(output: Path) -> set[str]:
    """Return the relative paths of the part files in the output."""
    return {path.relative_to(output).as_posix() for path in output.rglob(PATTERN)}


def _holding(output: Path) -> str:
    sizes = [(output / name).stat().st_size for name in _present(output)]
    return f"{quantity(len(sizes), 'file')}, {sum(sizes) / 1e6:.1f} MB in {output}"


def _check_names(files: Sequence[InputFile]) -> None:
    for file in files:
        if ".." in PurePosixPath(file.relative).parts:
            raise UserError(
                f"The input file {file.path} was found through '..' after a wildcard, so its place "
                "in the output is unknown; give --input without '..'."
            )


def _progress(file: InputFile, done: int, total: int) -> None:
    print_message(f"{done + 1}/{total} {file.relative} ({file.bytes / 1e6:.1f} MB)")


if __name__ == "__main__":
    sys.exit(run_module("pipelines.cp_wudao"))
