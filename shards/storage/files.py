"""Files that are either whole or absent.

A file is written under a temporary name next to its final one, synced to the disk and renamed. Its
size and crc32c are computed while it is written, so that nobody has to read it again. A crash at
any moment leaves the file with the final name either untouched or complete, and at most a `.tmp-*`
file besides. Behind a URL there is no rename: a file is written on this machine and then uploaded
under its final name.
"""

import errno
import io
import json
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

import google_crc32c
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shards.errors import DamageError
from shards.storage.disk import disk_error, disk_errors_explained
from shards.storage.remote import AnyPath, RemotePath

Bytes = bytes | bytearray | memoryview | NDArray[Any]

TEMPORARY = ".tmp-"
"""Prefix of the names of unfinished files."""

_BLOCK_BYTES = 4 << 20
_BUFFER_BYTES = 1 << 20


def check_count(number: int) -> None:
    """Check that a number can be a count, a size or a checksum.

    Raises:
        ValueError: The number is negative, or the sum of 32,768 such numbers may overflow.
    """
    if not 0 <= number <= 2**48:
        raise ValueError("this number is below 0 or above 2^48, the maximum in a dataset")


Count = Annotated[int, check_count]
"""The type of a record's field (records.py) that is a count, a size or a checksum."""


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """Size and checksum that a finished file must have."""

    bytes: Count
    """Size of the file in bytes."""
    crc32c: Count
    """Castagnoli checksum of the whole file."""


def crc32c_of(data: Bytes, value: int = 0) -> int:
    """Return the crc32c of `data`, continued from `value`, without copying the data."""
    # google_crc32c accepts an array, but not a memoryview.
    return int(google_crc32c.extend(value, np.frombuffer(data, np.uint8)))


def crc32c(path: AnyPath) -> int:
    """Return the crc32c of a file, read in blocks of 4 MiB."""
    value = 0
    for data in read_blocks(path):
        value = crc32c_of(data, value)
    return value


def is_intact(path: AnyPath, entry: FileEntry, sizes: Mapping[str, int] | None = None) -> bool:
    """Return whether a file exists with the size and checksum of its entry.

    On a disk the whole file is read. Behind a URL, where files are whole or absent, comparing the
    size is enough.

    Args:
        path: The file.
        entry: Its expected size and checksum.
        sizes: The sizes of the files in its folder, from `list_files`; None looks up the size.
    """
    if (size_if_there(path) if sizes is None else sizes.get(path.name, -1)) != entry.bytes:
        return False
    return isinstance(path, RemotePath) or crc32c(path) == entry.crc32c


def read_blocks(path: AnyPath) -> Iterator[Bytes]:
    """Yield the content of a file in blocks of 4 MiB, each valid until the next one is requested.

    Behind a URL a block that failed is read again.

    Raises:
        DamageError: There is no such file.
        UserError: It cannot be read.
    """
    total = file_size(path)
    if isinstance(path, RemotePath):
        for start in range(0, total, _BLOCK_BYTES):
            yield path.read(start, min(start + _BLOCK_BYTES, total))
        return
    block = np.empty(_BLOCK_BYTES, np.uint8)
    with disk_errors_explained(path), path.open("rb", buffering=0) as file:
        # Before Python 3.12 mypy knows no buffer protocol.
        while count := file.readinto(block):  # type: ignore[arg-type]
            yield block[:count]


class Handle(io.RawIOBase):
    """A file being written, with its size and crc32c; pyarrow's writers accept it as a sink.

    Closing the handle does not close the file; the block that writes the file does.
    """

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._bytes = 0
        self._crc32c = 0

    def write(self, data: Bytes) -> int:  # type: ignore[override]  # an array is not a Buffer yet
        """Append contiguous data and return its size in bytes."""
        view = np.frombuffer(data, np.uint8)
        try:  # A context manager would take longer than a small write.
            self._file.write(view.data)
        except OSError as error:
            raise disk_error(error, self._path) from error
        self._crc32c = crc32c_of(view, self._crc32c)
        self._bytes += view.size
        return view.size

    @property
    def entry(self) -> FileEntry:
        """The size and checksum of the bytes written so far; after the block, of the whole file."""
        return FileEntry(bytes=self._bytes, crc32c=self._crc32c)

    def tell(self) -> int:
        """Return the position: the number of bytes written."""
        return self._bytes

    def writable(self) -> bool:
        """Return True, because pyarrow calls this."""
        return True


@contextmanager
def atomic_write(path: AnyPath) -> Iterator[Handle]:
    """Yield a handle whose content appears under `path` when the block ends without an exception.

    Missing parent folders are created. On an exception the temporary file is removed. For a URL the
    temporary file has no name and is in the folder for temporary files (TMPDIR).

    Raises:
        UserError: The disk is full, the folder is not writable, or the like.
    """
    if isinstance(path, RemotePath):
        with tempfile.TemporaryFile(buffering=_BUFFER_BYTES) as unnamed:
            local = Path(f"/proc/self/fd/{unnamed.fileno()}")
            file = cast(BinaryIO, unnamed)
            yield Handle(file, Path(tempfile.gettempdir(), path.name))
            with disk_errors_explained(local):
                unnamed.flush()
            path.upload(local)
        return
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}-{path.name}")
    with disk_errors_explained(path):
        make_folder(path.parent)
        file = temporary.open("xb", buffering=_BUFFER_BYTES)
    try:
        yield Handle(file, path)
        with disk_errors_explained(path):
            file.flush()
            os.fsync(file.fileno())
            file.close()
            temporary.replace(path)
            sync_folder(path.parent)
    except BaseException:
        # On a full disk flushing the buffer fails again; the first error is the one to report.
        with suppress(OSError):
            file.close()
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def make_folder(folder: Path) -> None:
    """Create a folder and its parents so that they survive a crash of the machine."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot fsync a folder; there a rename is durable by itself.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def canonical_json(value: object) -> bytes:
    """Return the canonical JSON of a value in UTF-8: sorted keys, indent 1, a final newline."""
    text = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def write_json(path: AnyPath, value: object) -> FileEntry:
    """Write a value as canonical JSON, whole or not at all, and return the file's entry."""
    with atomic_write(path) as handle:
        handle.write(canonical_json(value))
    return handle.entry


def read_json(path: AnyPath) -> Any:  # JSON may have any shape; the caller checks it
    """Return the value in a JSON file, which `canonical_json` can write.

    Raises:
        DamageError: The file is missing, is not valid JSON, has numbers that are not finite or text
            that is not Unicode, or is nested deeper than any file of ours.
    """
    content = map_bytes(path).tobytes()
    try:
        value = json.loads(content)
        # Raises for numbers that are not finite, and for halves of surrogate pairs.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        if (depth := _depth(content)) > _MAX_DEPTH:
            raise ValueError(f"its lists and objects are nested {depth} deep")
    except (ValueError, RecursionError) as error:
        raise DamageError(
            f"{path} is not valid JSON ({error}): it was changed after it was written. Restore it "
            "from a copy, or delete it and rerun the command that made it."
        ) from error
    return value


_MAX_DEPTH = 64
"""The maximum number of levels of nested lists and objects: ten times as many as any file of ours
has."""

_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')


def _depth(content: bytes) -> int:
    """Return how deeply lists and objects of valid JSON are nested."""
    data = np.frombuffer(_TEXT.sub(b"", content), np.uint8)
    steps = np.isin(data, [*b"[{"]).astype(np.int8) - np.isin(data, [*b"]}"])
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))


@contextmanager
def json_errors_explained(path: AnyPath, advice: str) -> Iterator[None]:
    """Explain errors in the block, which uses JSON that may have any shape.

    Args:
        path: The file that holds the JSON.
        advice: The advice in the error message.

    Raises:
        DamageError: A value is missing, or has an unexpected type or size.
    """
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        text = f"{type(error).__name__}: {error}"[:200]
        raise DamageError(
            f"{path} does not have the content that corpusmill writes ({text}): {advice}."
        ) from error


def file_size(path: AnyPath) -> int:
    """Return the size of a file in bytes.

    Raises:
        DamageError: There is no such file.
    """
    if (num_bytes := size_if_there(path)) < 0:
        raise _missing_file(path)
    return num_bytes


def size_if_there(path: AnyPath) -> int:
    """Return the size of a file in bytes, or -1 if there is no such file."""
    if isinstance(path, RemotePath):
        return path.size()
    with disk_errors_explained(path):
        try:
            return path.stat().st_size if path.is_file() else -1
        except (FileNotFoundError, NotADirectoryError):
            return -1


def check_size(path: AnyPath, found: int, *, expected: int) -> None:
    """Check that a file has the size that the manifest states.

    Raises:
        DamageError: The size differs.
    """
    if found != expected:
        raise DamageError(
            f"{path} has {found:,} bytes, but the manifest says {expected:,}: it was truncated or "
            "replaced. Restore it from a copy, or build the dataset again."
        )


def _missing_file(path: AnyPath) -> DamageError:
    return DamageError(f"{path} is missing: restore it, or build it again.")


def map_bytes(path: AnyPath) -> NDArray[np.uint8]:
    """Return the bytes of a file, read-only: memory-mapped, or downloaded from its URL.

    No file descriptor stays open.

    Raises:
        DamageError: There is no such file.
    """
    if isinstance(path, RemotePath):
        try:
            return np.frombuffer(path.read(), np.uint8)
        except FileNotFoundError as error:
            raise _missing_file(path) from error
    if file_size(path) == 0:  # an empty file cannot be mapped
        return np.empty(0, np.uint8)
    # Python's own mmap keeps a descriptor per mapping, and a dataset may have many thousands.
    with disk_errors_explained(path), pa.memory_map(str(path)) as file:
        return np.frombuffer(file.read_buffer(), np.uint8)


def read_verified(path: AnyPath, entry: FileEntry) -> NDArray[np.uint8]:
    """Return the bytes of a file as `map_bytes` does, after comparing all of them with its entry.

    Raises:
        DamageError: There is no such file, or it has other bytes.
    """
    content = map_bytes(path)
    if content.size != entry.bytes or crc32c_of(content) != entry.crc32c:
        raise DamageError(
            f"{path} is not the file that the manifest names: it has {content.size:,} bytes with "
            f"crc32c {crc32c_of(content):08x}, the manifest says {entry.bytes:,} with "
            f"{entry.crc32c:08x}. It was damaged or replaced: restore it from a copy, or build the "
            "dataset again."
        )
    return content


def list_files(folder: AnyPath, *, unfinished: bool = False) -> dict[str, int]:
    """Return the sizes in bytes of all files below a folder, by relative path, sorted.

    Unfinished files are left out unless requested. A folder that does not exist has no files.
    """
    if isinstance(folder, RemotePath):
        return dict(sorted(folder.files().items()))
    sizes = {}
    for path in sorted(folder.rglob("*")):
        with suppress(FileNotFoundError):  # deleted while we listed the folder
            if path.is_file() and (unfinished or not path.name.startswith(TEMPORARY)):
                sizes[path.relative_to(folder).as_posix()] = path.stat().st_size
    return sizes


def delete(path: AnyPath) -> None:
    """Delete a file, a folder with all its content, or a link without its target.

    Raises:
        UserError: It cannot be deleted, or is on a disk and does not exist.
    """
    if isinstance(path, RemotePath):
        if names := path.files():
            path.remove([*names])
        else:
            path.unlink(missing_ok=True)
        return
    with disk_errors_explained(path):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def hard_link(source: AnyPath, target: Path) -> bool:
    """Give a file a second name, which must be unused; return False if that is not possible.

    If the source is a symbolic link, its target is linked.

    Raises:
        UserError: The folder is not writable, or the like.
    """
    if isinstance(source, RemotePath):
        return False
    with disk_errors_explained(target):
        make_folder(target.parent)
        try:
            target.hardlink_to(source.resolve())
        except OSError:  # another disk, too many links, another user's file
            return False
        sync_folder(target.parent)
    return True


def list_file_names(folder: AnyPath) -> set[str]:
    """Return the names of all files directly in a folder.

    Unfinished files are left out. A folder that does not exist has no files.
    """
    if isinstance(folder, RemotePath):
        return {name for name in folder.files() if "/" not in name}
    try:
        with os.scandir(folder) as entries:
            names = {entry.name for entry in entries if entry.is_file()}
    except FileNotFoundError:
        return set()
    return {name for name in names if not name.startswith(TEMPORARY)}
