"""Splits, which are byte ranges of input files, and the function that cuts a file into them.

`splits` in `pipelines/read/formats.py` decides from a file's format where it is cut, if at all.

The size of a split depends on the file and on `split_bytes` alone, so that the same corpus is cut
the same way for any number of workers.
"""

import dataclasses
import itertools
import os
from typing import BinaryIO

from pipelines.read.files import InputFile, open_input
from pipelines.read.remote_files import open_remote
from shards.errors import UserError
from shards.storage.address import is_url


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FileSplit:
    """The bytes [start, end) of an input file; for a Parquet file, the rows [start, end)."""

    source: str
    path: str
    relative: str
    file_bytes: int
    start: int
    end: int
    mtime_ns: int
    etag: str = ""
    form: str = ""
    """The format of the file, as in `Peek.format`."""

    @property
    def name(self) -> tuple[str, str]:
        """The source and relative path of the file, as in `InputFile.name`."""
        return self.source, self.relative

    @property
    def place(self) -> tuple[str, str, int]:
        """The key by which the splits of a corpus are sorted."""
        return self.source, self.relative, self.start


def split_file(file: InputFile, split_bytes: int, *, form: str = "") -> list[FileSplit]:
    """Return the splits of a file, in order and without gaps.

    All splits are `split_bytes` long except the last, which takes the remainder: it has between
    half and one and a half times that length. A shorter file is one split.

    Raises:
        ValueError: `split_bytes` is below 1.
    """
    if split_bytes < 1:
        raise ValueError(f"split_bytes must be at least 1, not {split_bytes}")
    count = max(1, (2 * file.bytes + split_bytes) // (2 * split_bytes))
    edges = [index * split_bytes for index in range(count)] + [file.bytes]
    return [
        FileSplit(
            source=file.source,
            path=file.path,
            relative=file.relative,
            file_bytes=file.bytes,
            start=start,
            end=end,
            mtime_ns=file.mtime_ns,
            etag=file.etag,
            form=form,
        )
        for start, end in itertools.pairwise(edges)
    ]


def open_split(split: FileSplit) -> BinaryIO:
    """Open the file of a split like `open_input`, if it is still the file that was cut.

    Raises:
        UserError: The file cannot be opened, or its size, time or etag has changed since it was
            cut.
    """
    if is_url(split.path):
        file, remote = open_remote(split.path)
        state = (remote.bytes, split.mtime_ns, remote.etag)
    else:
        file = open_input(split.path)
        state = _state(file, split)
    try:
        _check(split, state)
    except UserError:
        file.close()
        raise
    return file


def check_unchanged(file: BinaryIO, split: FileSplit) -> None:
    """Check that a file on a local disk was not modified while it was read.

    Args:
        file: The file that `open_split` returned. For a URL, nothing is checked, because reading a
            changed file fails.
        split: The split that was read.

    Raises:
        UserError: The file was modified.
    """
    if not is_url(split.path):
        _check(split, _state(file, split))


def _state(file: BinaryIO, split: FileSplit) -> tuple[int, int, str]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns, split.etag


def _check(split: FileSplit, state: tuple[int, int, str]) -> None:
    if state == (split.file_bytes, split.mtime_ns, split.etag):
        return
    change = (
        f"has {state[0]} bytes and had {split.file_bytes} when the run began"
        if state[0] != split.file_bytes
        else "was written again after the run began"
    )
    raise UserError(
        f"The input {split.path} {change}, so it is still being written. Run the command again "
        "when the file is complete."
    )
