"""The files of an input behind a URL, found and read through fsspec."""

import glob
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from pipelines.inputs.found import Found, any_of, some_of
from shards.errors import UserError
from shards.storage.address import check_address, explained, retried, without_secrets
from shards.storage.remote import file_system

READ_AHEAD_BYTES = 8 << 20
"""How much one request reads: at 8 MiB the time to the first byte hardly counts any more."""

_VERSIONS = ("ETag", "etag", "blob_id", "xet_hash", "generation", "VersionId")
_TIMES = ("LastModified", "last_modified", "mtime", "updated", "created")


def find_remote(url: str, patterns: Sequence[str]) -> list[Found]:
    """Return the files that a URL names, as `find_local` does for a path.

    A web address names a folder if it ends with a slash. Listings are fetched page by page.

    Raises:
        UserError: Nothing is there or matches, the server does not answer or refuses, the library
            for the protocol is not installed, or the URL holds a password or a query.
    """
    check_address(url)
    with explained(url):
        return retried(url, lambda: _find(url, patterns))


def _find(url: str, patterns: Sequence[str]) -> list[Found]:
    place = _Place.of(url)
    try:
        info = place.system.info(place.path)
    except FileNotFoundError:
        if not glob.has_magic(place.path):
            raise
        return _glob(place)
    if info["type"] == "directory" or url.endswith("/"):
        return _folder(place, patterns)
    return [_found(place, {**info, "name": place.path}, root=place.path.rpartition("/")[0])]


def open_remote(url: str) -> tuple[BinaryIO, Found]:
    """Return a file opened for reading from its start, seekable, and what it is at this moment.

    Where the library can (S3), all later reads are of this version or fail.

    Raises:
        UserError: It cannot be opened. Reading raises it as well.
    """
    with explained(url):
        return retried(url, lambda: _open(url))


def _open(url: str) -> tuple[BinaryIO, Found]:
    place = _Place.of(url)
    # The buffer is the only cache.
    file = place.system.open(place.path, "rb", block_size=READ_AHEAD_BYTES, cache_type="none")
    buffered = io.BufferedReader(_Reads(file, url), READ_AHEAD_BYTES)
    info = getattr(file, "details", None) or place.system.info(place.path)
    return buffered, _found(place, {**info, "name": place.path}, root="")


class _Reads(io.RawIOBase):
    """A file of fsspec whose errors are told to the person."""

    def __init__(self, file: Any, url: str) -> None:  # fsspec has no types
        self._file = file
        self._url = url

    def readinto(self, buffer: Any) -> int:  # mypy knows no buffer protocol before Python 3.12
        with explained(self._url):
            # A read that fails leaves the position where it was.
            data = retried(self._url, lambda: self._file.read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        # What io makes of this by itself asks for 8 KiB at a time.
        with explained(self._url):
            return bytes(retried(self._url, self._file.read))

    def seek(self, offset: int, whence: int = 0) -> int:
        with explained(self._url):
            return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where a URL leads: a file system of fsspec and a path in it."""

    system: Any  # fsspec has no types
    path: str
    base: str
    """What stands before a path of the file system in a URL."""

    @classmethod
    def of(cls, url: str) -> "_Place":
        system, path = file_system(url)
        bare = url.rstrip("/")
        base = bare.removesuffix(path) if bare.endswith(path) else ""
        return cls(system=system, path=path.rstrip("/"), base=base)

    def url(self, path: str) -> str:
        return self.base + path if self.base else str(self.system.unstrip_protocol(path))


def _folder(place: _Place, patterns: Sequence[str]) -> list[Found]:
    infos = _files(place.system.find(place.path, detail=True))
    chosen = [
        info
        for info in infos
        if any(PurePosixPath(_below(info, place.path)).match(pattern) for pattern in patterns)
    ]
    if not chosen:
        raise UserError(
            f"No file in {without_secrets(place.url(place.path))} matches {any_of(patterns)}; "
            f"{_inventory(infos, place.path)}."
        )
    return [_found(place, info, root=place.path) for info in chosen]


def _glob(place: _Place) -> list[Found]:
    parts = place.path.split("/")
    first = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    root = "/".join(parts[:first])
    chosen = _files(place.system.glob(place.path, detail=True))
    if not chosen:
        place.system.info(root)  # says it when the folder is not there
        raise UserError(f"No file matches {without_secrets(place.url(place.path))}.")
    return [_found(place, info, root=root) for info in chosen]


def _files(infos: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return what is a file; some tools make empty objects named FOLDER/ to stand for folders."""
    return [
        info
        for _, info in sorted(infos.items())
        if info["type"] == "file" and not info["name"].endswith("/")
    ]


def _below(info: Mapping[str, Any], root: str) -> str:
    return str(info["name"]).removeprefix(root).lstrip("/")


def _inventory(infos: Sequence[Mapping[str, Any]], root: str) -> str:
    names = [_below(info, root) for info in infos]
    return f"it holds {some_of(names)}" if names else "it is empty"


def _found(place: _Place, info: Mapping[str, Any], *, root: str) -> Found:
    url = place.url(str(info["name"]))
    if info["size"] is None:  # as in listings of web folders
        info = {**place.system.info(info["name"]), "name": info["name"]}
    if info["size"] is None:
        raise UserError(
            f"The server of {without_secrets(url)} does not tell the file's size, or sends no "
            "parts of it; fetch the file first."
        )
    return Found(path=url, relative=_below(info, root), bytes=info["size"], etag=etag_of(info))


def etag_of(info: Mapping[str, Any]) -> str:
    """Return what tells a version of a file from the next: etag, version, or time; else nothing.

    Args:
        info: What fsspec's `info` returns for the file.
    """
    for key in _VERSIONS:
        if info.get(key):
            return str(info[key]).strip('"')
    return next((_instant(info[key]) for key in _TIMES if info.get(key)), "")


def _instant(time: object) -> str:
    if isinstance(time, datetime):
        # Listings and single answers differ in time zone and in fractions of a second.
        return time.astimezone(UTC).isoformat(timespec="seconds")
    return str(time)
