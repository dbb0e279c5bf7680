"""Picks records out of JSON array files by their sample hash, and writes them as such files.

A record is picked or not whatever the order of files and whoever asks: of two picks with one seed,
the larger holds the smaller.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipelines.inputs.sources import InputFile, open_input, split_file
from pipelines.readers.json_array import JsonArrayReader
from pipelines.readers.record import Record
from pipelines.segments.rows import sample_hashes
from shards.errors import UserError
from shards.storage.files import atomic_write, crc32c

_BATCH = 1 << 16
_PLACES = np.dtype([("hash", "<u8"), ("file", "<i8"), ("offset", "<i8"), ("length", "<i8")])


@dataclass(kw_only=True)
class Tally:
    """What was read."""

    records: int = 0
    damages: int = 0
    """Stretches that hold no record, though they should."""


def pick_below(file: InputFile, limit: int, *, seed: int, tally: Tally) -> np.ndarray:
    """Return the places of a file's records whose sample hash is below a limit (at most 2**64).

    A place has the fields hash, file (0), offset and length in bytes; they come in file order.
    """
    batches = _places(file, 0, seed=seed, tally=tally)
    return _joined([places[places["hash"] < limit] for places in batches])


def pick_least(files: Sequence[InputFile], number: int, *, seed: int, tally: Tally) -> np.ndarray:
    """Return the places of the records with the least sample hashes, as pick_below() does.

    `file` is an index into `files`; ties go to the earlier record. Memory holds no more than
    twice `number` places and a batch.
    """
    best, limit = _joined([]), np.iinfo(np.uint64).max
    for index, file in enumerate(files):
        for places in _places(file, index, seed=seed, tally=tally):
            best = _joined([best, places[places["hash"] <= limit]])
            if len(best) > 2 * number:
                best = _least(best, number)
                limit = best["hash"].max()
    best = _least(best, number)
    return best[np.lexsort((best["offset"], best["file"]))]


def write_picked(file: InputFile, places: np.ndarray, path: Path) -> None:
    """Write the records of a file at some places as a JSON array, each with the bytes it had.

    Raises:
        UserError: Something else is at `path`; it is left alone.
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
                f"{path} is there already and holds other documents; remove the folder or choose "
                "another --output."
            )


def _places(file: InputFile, index: int, *, seed: int, tally: Tally) -> Iterator[np.ndarray]:
    """Yield the places of all records of a file, in batches."""
    (split,) = split_file(file, file.bytes)
    # The batches need no text, and a whole file is read, so no field is asked for.
    reader = iter(JsonArrayReader(split, text_fields=()))
    while items := list(itertools.islice(reader, _BATCH)):
        spans = [(item.offset, item.length) for item in items if isinstance(item, Record)]
        places = np.zeros(len(spans), _PLACES)
        if spans:
            places["offset"], places["length"] = np.array(spans).T
        places["file"] = index
        places["hash"] = sample_hashes(file.source, file.relative, places["offset"], seed=seed)
        tally.records += len(spans)
        tally.damages += len(items) - len(spans)
        yield places


def _least(places: np.ndarray, number: int) -> np.ndarray:
    return places[np.lexsort((places["offset"], places["file"], places["hash"]))[:number]]


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, _PLACES), *parts])
