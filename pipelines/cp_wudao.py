"""Makes toy corpora: a few files or documents of WuDao, the same ones every time.

    python -m pipelines.cp_wudao 4                   top build/toy up to four files
    python -m pipelines.cp_wudao --documents 1000    the thousand documents of least sample hash
    python -m pipelines.cp_wudao --fraction 1%       those that pipelines.wudao --sample 1% takes

The choice depends only on names, positions and the seed; a larger one contains every smaller one.
Nothing is deleted, and no existing file is changed.
"""

import hashlib
import itertools
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

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
from shards.commands.output import print_line, print_message
from shards.commands.table import called
from shards.console import run_module
from shards.errors import UserError
from shards.storage.files import atomic_write, crc32c

_BLOCK_BYTES = 4 << 20
_BATCH = 1 << 16
_PLACES = np.dtype([("hash", "<u8"), ("file", "<i8"), ("offset", "<i8"), ("length", "<i8")])


@dataclass(kw_only=True)
class PickCounts:
    """The records that were read."""

    records: int = 0
    damages: int = 0
    """Passages where a record was expected but is missing."""


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
    """Copy files until the output holds `wanted`, and return a line saying what it holds."""
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
    """Copy the documents of least sample hash and return a line saying what the output holds.

    Args:
        files: The files to read.
        output: The folder that the documents are written to, in files with the original names.
        number: How many documents to take; None to take a share.
        share: The share of documents to take, if `number` is None.
        seed: Seed of the sample hash.

    Raises:
        UserError: The output contains other documents, or no document would be copied.
    """
    present = _present(output)
    foreign = sorted(present - {file.relative for file in files})
    if foreign:
        raise UserError(
            f"{output} holds {foreign[0]}, which this input does not have; remove it or choose "
            "another --output."
        )
    counts = PickCounts()
    least = None if number is None else pick_least(files, number, seed=seed, counts=counts)
    taken = 0
    for index, file in enumerate(files):
        _progress(file, index, len(files))
        if least is None:
            places = pick_below(file, hash_bound(share), seed=seed, counts=counts)
        else:
            places = least[least["file"] == index]
        if len(places) or file.relative in present:
            write_picked(file, places, output / file.relative)
        taken += len(places)
    if not taken:
        raise UserError(f"None of {counts.records} documents falls into the share; ask for more.")
    notes = [f"{taken} documents in {_holding(output)}"]
    if taken < (number or 0):
        notes.append(f"all of them ({number} were requested)")
    if counts.damages:
        notes.append(f"{counts.damages} damaged stretches left out")
    return ", ".join(notes)


def pick_below(file: InputFile, limit: int, *, seed: int, counts: PickCounts) -> np.ndarray:
    """Return the places of a file's records whose sample hash is below a limit (at most 2**64).

    A place has the fields hash, file (0), offset and length in bytes. Places are in file order.
    """
    batches = _places(file, 0, seed=seed, counts=counts)
    return _joined([places[places["hash"] < limit] for places in batches])


def pick_least(
    files: Sequence[InputFile], number: int, *, seed: int, counts: PickCounts
) -> np.ndarray:
    """Return the places of the records with the least sample hashes, as pick_below() does.

    `file` is an index into `files`; ties go to the earlier record. Memory holds at most twice
    `number` places and a batch.
    """
    best, limit = _joined([]), np.iinfo(np.uint64).max
    for index, file in enumerate(files):
        for places in _places(file, index, seed=seed, counts=counts):
            best = _joined([best, places[places["hash"] <= limit]])
            if len(best) > 2 * number:
                best = _least(best, number)
                limit = best["hash"].max()
    best = _least(best, number)
    return best[np.lexsort((best["offset"], best["file"]))]


def write_picked(file: InputFile, places: np.ndarray, path: Path) -> None:
    """Write the records at some places of a file as a JSON array, each with its original bytes.

    Raises:
        UserError: `path` exists with other content, which is not changed.
    """
    with atomic_write(path) as handle, open_input(file.path) as source:
        handle.write(b"[")
        before = b"\n"
        for offset, length in zip(places["offset"], places["length"], strict=True):
            source.seek(offset)
            handle.write(before + source.read(length))
            before = b",\n"
        handle.write(b"\n]\n")
        if path.exists() and crc32c(path) != handle.entry.crc32c:
            raise UserError(
                f"{path} already exists and holds other documents; remove the folder or choose "
                "another --output."
            )


def _places(file: InputFile, index: int, *, seed: int, counts: PickCounts) -> Iterator[np.ndarray]:
    """Yield the places of all records of a file, in batches."""
    (split,) = split_file(file, file.bytes, form="json")
    # Only places are needed, and each file is one split, so no text field is required.
    reader = iter(open_reader(split, InputFormat()))
    while items := list(itertools.islice(reader, _BATCH)):
        spans = [(item.offset, item.length) for item in items if isinstance(item, Record)]
        places = np.zeros(len(spans), _PLACES)
        if spans:
            places["offset"], places["length"] = np.array(spans).T
        places["file"] = index
        places["hash"] = sample_hashes(file.source, file.relative, places["offset"], seed=seed)
        counts.records += len(spans)
        counts.damages += len(items) - len(spans)
        yield places


def _least(places: np.ndarray, number: int) -> np.ndarray:
    return places[np.lexsort((places["offset"], places["file"], places["hash"]))[:number]]


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, _PLACES), *parts])


def _rank(relative: str, seed: int) -> bytes:
    return hashlib.blake2b(f"{seed}\0{relative}".encode(), digest_size=16).digest()


def _present(output: Path) -> set[str]:
    """Return the relative paths of the part files in the output."""
    return {path.relative_to(output).as_posix() for path in output.rglob(PATTERN)}


def _holding(output: Path) -> str:
    sizes = [(output / name).stat().st_size for name in _present(output)]
    files = "1 file" if len(sizes) == 1 else f"{len(sizes)} files"
    return f"{files}, {sum(sizes) / 1e6:.1f} MB in {output}"


def _check_names(files: Sequence[InputFile]) -> None:
    for file in files:
        if ".." in PurePosixPath(file.relative).parts:
            raise UserError(
                f"The input file {file.path} was found through '..' behind a wildcard, so that its "
                "place in the output is not known; give --input without '..'."
            )


def _progress(file: InputFile, done: int, total: int) -> None:
    print_message(f"{done + 1}/{total} {file.relative} ({file.bytes / 1e6:.1f} MB)")


if __name__ == "__main__":
    sys.exit(run_module("pipelines.cp_wudao"))
