"""The files of an input behind a URL, found and read through fsspec."""

import glob
import io
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from pipelines.inputs.found_file import FoundFile, any_of, shown, some_of
from pipelines.inputs.wildcards import at_wildcard
from shards.errors import UserError
from shards.secrets import without_secrets
from shards.storage.address import check_address, explained, retried
from shards.storage.remote import file_system

_LOG = logging.getLogger("corpusmill")

_Info = Mapping[str, Any]
"""What fsspec knows of a file."""

_Found = tuple[list[FoundFile], dict[FoundFile, str]]
"""Files, and what matches but cannot be read, with the reason."""

READ_AHEAD_BYTES = 8 << 20
"""Size of one request: from 8 MiB on, the time to the first byte hardly matters."""

_VERSIONS = ("ETag", "etag", "blob_id", "xet_hash", "generation", "VersionId")
_TIMES = ("LastModified", "last_modified", "mtime", "updated", "created")


def find_remote(url: str, patterns: Sequence[str]) -> _Found:
    """Return the files that a URL names, and what cannot be read, as `find_local` does for a path.

    A web address names a folder if it ends with a slash. Listings are fetched page by page.

    Raises:
        UserError: Nothing is there or matches; the server does not answer, or refuses; the library
            for the protocol is not installed; the URL contains a password or a query.
    """
    check_address(url)
    with explained(url):
        return retried(url, lambda: _find(url, patterns))


def _find(url: str, patterns: Sequence[str]) -> _Found:
    location = _Location.of(url)
    try:
        info = location.system.info(location.path)
    except FileNotFoundError:
        if not glob.has_magic(location.path):
            raise
        return _glob(location)
    if info["type"] == "directory" or url.endswith("/"):
        return _folder(location, patterns)
    root = location.path.rpartition("/")[0]
    return [_describe(location, {**info, "name": location.path}, root=root)], {}


def look_remote(url: str, patterns: Sequence[str]) -> _Found:
    """Return what `find_remote` does, while files come and go: there may be none.

    Raises:
        UserError: As find_remote, but for the absence of files.
    """
    check_address(url)
    with explained(url):
        return retried(url, lambda: _look(url, patterns))


def open_remote(url: str) -> tuple[BinaryIO, FoundFile]:
    """Return a file opened for reading from its start, seekable, and its present size and etag.

    Where the library supports it (S3), later reads return this version of the file or fail.

    Raises:
        UserError: It cannot be opened. Reading the file raises this as well.
    """
    with explained(url):
        return retried(url, lambda: _open(url))


def _look(url: str, patterns: Sequence[str]) -> _Found:
    location = _Location.of(url)
    location.system.invalidate_cache()
    with suppress(FileNotFoundError):
        info = location.system.info(location.path)
        if info["type"] != "directory" and not url.endswith("/"):
            root = location.path.rpartition("/")[0]
            return [_describe(location, {**info, "name": location.path}, root=root)], {}
    wild = glob.has_magic(location.path)
    root = _fixed_folder(location.path) if wild else location.path
    try:
        matches = _expanded(location) if wild else _matching(location, patterns)
    except FileNotFoundError:
        if location.system.exists(root):
            raise
        return [], {}  # storage without folders: nothing has been put there yet
    return matches.described(location, root=root)


def _open(url: str) -> tuple[BinaryIO, FoundFile]:
    location = _Location.of(url)
    # The buffer is the only cache.
    file = location.system.open(location.path, "rb", block_size=READ_AHEAD_BYTES, cache_type="none")
    buffered = io.BufferedReader(_RetriedReads(file, url), READ_AHEAD_BYTES)
    info = getattr(file, "details", None) or location.system.info(location.path)
    return buffered, _describe(location, {**info, "name": location.path}, root="")


class _RetriedReads(io.RawIOBase):
    """A file of fsspec whose errors become UserErrors."""

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
        # The inherited readall() asks for 8 KiB at a time.
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
class _Location:
    """What a URL points to: a file system of fsspec and a path in it."""

    system: Any  # fsspec has no types
    path: str
    base: str
    """The part of a URL before a path of the file system."""

    @classmethod
    def of(cls, url: str) -> "_Location":
        system, path = file_system(url)
        bare = url.rstrip("/")
        base = bare.removesuffix(path) if bare.endswith(path) else ""
        return cls(system=system, path=path.rstrip("/"), base=base)

    def find(self) -> list[_Info]:
        """Return what fsspec knows of all files below the folder, by name."""
        with _complete(self.system):
            return _files(self.system.find(self.path, detail=True))

    def glob(self) -> list[_Info]:
        """Return what fsspec knows of the files that match the path, by name."""
        with _complete(self.system):
            return _files(self.system.glob(self.path, detail=True))

    def url(self, path: str) -> str:
        return self.base + path if self.base else str(self.system.unstrip_protocol(path))


@dataclass(frozen=True)
class _Matches:
    """What a search behind a URL has met."""

    files: list[_Info] = field(default_factory=list)
    refused: list[tuple[_Info, str]] = field(default_factory=list)
    """What matches but is no file, and why."""
    astray: list[_Info] = field(default_factory=list)
    """Links to no file that do not match."""

    def described(self, location: _Location, *, root: str) -> _Found:
        return [_describe(location, info, root=root) for info in self.files], {
            FoundFile(
                path=location.url(str(info["name"])), relative=_below(info, root), bytes=0
            ): why
            for info, why in self.refused
        }


@contextmanager
def _complete(system: Any) -> Iterator[None]:
    """Have a listing fail where that of a folder in it does: fsspec would leave the folder out."""
    walks = [name for name in ("walk", "_walk") if hasattr(system, name)]
    try:
        for name in walks:
            walk = getattr(type(system), name)
            setattr(system, name, partial(walk, system, on_error="raise"))
        yield
    finally:
        for name in walks:
            vars(system).pop(name, None)


def _folder(location: _Location, patterns: Sequence[str]) -> _Found:
    chosen = _matching(location, patterns)
    if not (chosen.files or chosen.refused):
        raise UserError(
            f"No file in {without_secrets(location.url(location.path))} matches "
            f"{any_of(patterns)}; {_inventory(location.find(), location.path)}."
        )
    if chosen.astray:
        _LOG.warning(
            "%s: links to folders, or to nothing, are passed over: %s",
            shown(without_secrets(location.url(location.path))),
            some_of([shown(_below(info, location.path)) for info in chosen.astray]),
        )
    return chosen.described(location, root=location.path)


def _matching(location: _Location, patterns: Sequence[str]) -> _Matches:
    def matches(info: _Info) -> bool:
        path = PurePosixPath(_below(info, location.path))
        return any(map(path.match, patterns))

    # A link may be one to a folder, whatever its name.
    infos = [info for info in location.find() if info["type"] == "link" or matches(info)]
    return _followed(location, infos, matches=matches)


def _expanded(location: _Location) -> _Matches:
    return _followed(location, location.glob(), matches=lambda _: True)


def _glob(location: _Location) -> _Found:
    root = _fixed_folder(location.path)
    chosen = _expanded(location)
    if not (chosen.files or chosen.refused):
        location.system.info(root)  # raises if there is no such folder
        raise UserError(f"No file matches {without_secrets(location.url(location.path))}.")
    return chosen.described(location, root=root)


def _fixed_folder(path: str) -> str:
    """Return the part of a glob before its first component with a wildcard."""
    return "/".join(at_wildcard(path.split("/"))[0])


def _files(infos: Mapping[str, _Info]) -> list[_Info]:
    """Return the entries but folders; an empty object named FOLDER/ stands for one, too."""
    return [
        info
        for _, info in sorted(infos.items())
        if info["type"] != "directory" and not info["name"].endswith("/")
    ]


def _followed(
    location: _Location, infos: Iterable[_Info], *, matches: Callable[[_Info], bool]
) -> _Matches:
    """Return files, those that links lead to included; a folder behind one is not searched."""
    met = _Matches()
    for info in infos:
        behind, why = _behind(location, info)
        if not matches(info):
            met.astray.extend([info] if why else [])
        elif why:
            met.refused.append((info, why))
        else:
            met.files.append(behind)
    return met


def _behind(location: _Location, info: _Info) -> tuple[_Info, str]:
    """Return what is known of a file, or of the one that a link leads to; and why it is none."""
    if info["type"] == "file":
        return info, ""
    try:
        behind = {**location.system.info(info["name"]), "name": info["name"]}
    except FileNotFoundError:
        return info, "is a link to nothing"
    if behind["type"] == "file":
        return behind, ""
    if behind["type"] == "directory":
        return info, (
            "is a link to a folder, which is not followed behind a URL: give the folder as an "
            "input of its own"
        )
    return info, "is neither a file nor a folder"


def _below(info: _Info, root: str) -> str:
    return str(info["name"]).removeprefix(root).lstrip("/")


def _inventory(infos: Sequence[_Info], root: str) -> str:
    names = [_below(info, root) for info in infos]
    return f"it holds {some_of(names)}" if names else "it is empty"


def _describe(location: _Location, info: _Info, *, root: str) -> FoundFile:
    url = location.url(str(info["name"]))
    if info["size"] is None:  # as in listings of web folders
        info = {**location.system.info(info["name"]), "name": info["name"]}
    if info["size"] is None:
        raise UserError(
            f"The server of {without_secrets(url)} does not report the file's size, or cannot "
            "send parts of it; download the file first."
        )
    return FoundFile(path=url, relative=_below(info, root), bytes=info["size"], etag=etag_of(info))


def etag_of(info: _Info) -> str:
    """Return what distinguishes versions of a file: etag, version or time; "" if none is known.

    Args:
        info: What fsspec's `info` returns for the file.
    """
    for key in _VERSIONS:
        if info.get(key):
            return str(info[key]).strip('"')
    return next((_instant(info[key]) for key in _TIMES if info.get(key)), "")


def _instant(time: object) -> str:
    if isinstance(time, datetime):
        # A listing and a single answer may differ in time zone and in fractions of a second.
        return time.astimezone(UTC).isoformat(timespec="seconds")
    return str(time)
