"""A storage in memory that counts the requests that S3 would get for what is asked of it."""

import mmap
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from fsspec import register_implementation
from fsspec.spec import AbstractFileSystem

from shards.storage.remote import RemotePath

PAGE_KEYS = 1000
"""Keys that a LIST returns, or a DELETE takes."""

PART_BYTES, SINGLE_BYTES = 50 << 20, 100 << 20
"""s3fs sends a file smaller than the second in one request, a larger one in parts of the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Requests by kind, and the bytes that they fetch."""

    put: float = 0.0
    get: float = 0.0
    head: float = 0.0
    list: float = 0.0
    delete: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: "Requests") -> "Requests":
        names = [field.name for field in fields(self)]
        return Requests(**{name: getattr(self, name) + getattr(other, name) for name in names})

    def __mul__(self, times: float) -> "Requests":
        return Requests(**{field.name: getattr(self, field.name) * times for field in fields(self)})

    @property
    def all(self) -> float:
        """Return their number."""
        return self.put + self.get + self.head + self.list + self.delete


def upload(size: float) -> Requests:
    """Return the requests that write a file of `size` bytes."""
    return Requests(put=1 if size < SINGLE_BYTES else 2 + -(-size // PART_BYTES))


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a file system: the key, what it takes, the bytes of the file that it writes."""

    key: str
    requests: Requests
    written: int = 0

    @property
    def size_alone(self) -> bool:
        """Whether it asks for the size of a file, which a process keeps."""
        return self.requests == Requests(head=1)


class CountingStorage(AbstractFileSystem):  # type: ignore[misc]
    """`counted://`: files in memory. What s3fs 2026.9 requests for each call, its source says."""

    protocol = "counted"
    cachable = False
    objects: ClassVar[dict[str, Any]] = {}
    calls: ClassVar[list[Call]] = []

    def _call(self, path: str, *, written: int = 0, **counts: float) -> None:
        self.calls.append(Call(self._strip_protocol(path), Requests(**counts), written))

    def _object(self, path: str) -> Any:
        try:
            return self.objects[self._strip_protocol(path)]
        except KeyError:
            raise FileNotFoundError(path) from None

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """HEAD; for an absent key also LIST, since it may be a folder."""
        key = self._strip_protocol(path)
        self._call(path, head=1, list=0 if key in self.objects else 1)
        return {"name": key, "size": len(self._object(path)), "type": "file"}

    def cat_file(self, path: str, **_: Any) -> bytes:
        """HEAD for the size, then GET, of a large file in parts."""
        data = self._object(path)
        self._call(path, head=1, get=max(1, -(-len(data) // PART_BYTES)), bytes=len(data))
        return bytes(data[:])

    def cat_ranges(
        self, paths: Sequence[str], starts: Sequence[int], ends: Sequence[int], **_: Any
    ) -> list[bytes]:
        """GET for each range."""
        for path, start, end in zip(paths, starts, ends, strict=True):
            self._call(path, get=1, bytes=end - start)
        ranges = zip(paths, starts, ends, strict=True)
        return [self._object(path)[start:end] for path, start, end in ranges]

    def pipe_file(self, path: str, value: Any, **_: Any) -> None:
        """PUT, of a large file in parts."""
        self.objects[self._strip_protocol(path)] = value
        self._call(path, written=len(value), put=upload(len(value)).put)

    def put_file(self, lpath: str, rpath: str, **_: Any) -> None:
        """PUT, of a large file in parts; the file is mapped, not copied."""
        with Path(lpath).open("rb") as file:
            empty = not os.fstat(file.fileno()).st_size
            data = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.pipe_file(rpath, data)

    def find(self, path: str, **_: Any) -> dict[str, dict[str, Any]]:
        """LIST for each page of keys; of nothing also HEAD and LIST, since it may be a file."""
        key = self._strip_protocol(path)
        objects = list(self.objects.items())  # progress lists them from a thread of its own
        found = {name: data for name, data in objects if name.startswith(f"{key}/")}
        pages = max(1, -(-len(found) // PAGE_KEYS))
        self._call(path, list=pages if found else 2, head=0 if found else 1)
        return {
            name: {"name": name, "size": len(data), "type": "file"} for name, data in found.items()
        }

    def rm_file(self, path: str) -> None:
        """DELETE."""
        self._call(path, delete=1)
        del self.objects[self._strip_protocol(path)]


register_implementation(CountingStorage.protocol, CountingStorage, clobber=True)


@contextmanager
def counting() -> Iterator[tuple[RemotePath, list[Call]]]:
    """Yield an empty folder, and the list that gets the calls; once at a time in a process.

    Its address is new, since processes remember the sizes of files.
    """
    CountingStorage.objects.clear()
    CountingStorage.calls.clear()
    try:
        yield RemotePath(f"counted://{uuid.uuid4().hex}/output"), CountingStorage.calls
    finally:
        CountingStorage.objects.clear()
        CountingStorage.calls.clear()
