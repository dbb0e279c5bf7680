"""Finds and reads the input files that a URL names, through fsspec."""

import glob
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, BinaryIO

from pipelines.read.input_file import InputFile, any_of, some_of, warn_of_links
from pipelines.read.listing import Listing
from pipelines.read.names import hidden_part, matcher, split_at_wildcard
from shards.errors import UserError
from shards.secrets import without_secrets
from shards.storage.address import check_address, retry, url_errors_explained
from shards.storage.remote import file_system

_Info = Mapping[str, Any]
"""The details of a file as fsspec returns them."""

READ_AHEAD_BYTES = 8 << 20
"""The size of one request; it is so large that the time to the first byte hardly matters."""

_VERSIONS = ("ETag", "etag", "blob_id", "xet_hash", "generation", "VersionId")
_TIMES = ("LastModified", "last_modified", "mtime", "updated", "created")


def find_remote(url: str, patterns: Sequence[str], *, growing: bool = False) -> Listing:
    """List the readable and the unreadable files that a URL names, as `find_local` does for a path.

    A web address names a folder if it ends with a slash. Listings are fetched page by page.

    Raises:
        UserError: Nothing exists or matches, unless `growing` is set; the server does not answer or
            refuses access; the library for the protocol is not installed; the URL contains a
            password or a query.
    """
    check_address(url)
    with url_errors_explained(url):
        return retry(url, lambda: _find(_Location.of(url), url, patterns, growing=growing))


def open_remote(url: str) -> tuple[BinaryIO, InputFile]:
    """Open a file to read it from its start; return the seekable file, and its size and etag.

    Where the library supports this (S3), later reads return this version of the file or fail.

    Raises:
        UserError: The file cannot be opened. Reading the file may raise this too.
    """
    with url_errors_explained(url):
        return retry(url, lambda: _open(_Location.of(url), url))


def _open(location: "_Location", url: str) -> tuple[BinaryIO, InputFile]:
    # The buffer is the only cache.
    file = location.system.open(location.path, "rb", block_size=READ_AHEAD_BYTES, cache_type="none")
    buffered = io.BufferedReader(_RetriedReads(file, url), READ_AHEAD_BYTES)
    info = getattr(file, "details", None) or location.system.info(location.path)
    return buffered, location.file({**info, "name": location.path}, root="")


class _RetriedReads(io.RawIOBase):
    """A file of fsspec that repeats failed reads and turns errors into UserErrors."""

    def __init__(self, file: Any, url: str) -> None:  # fsspec has no types
        self._file = file
        self._url = url

    def readinto(self, buffer: Any) -> int:  # mypy knows no buffer protocol before Python 3.12
        with url_errors_explained(self._url):
            # A failed read does not change the position.
            data = retry(self._url, lambda: self._file.read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        # The inherited readall() requests 8 KiB at a time.
        with url_errors_explained(self._url):
            return bytes(retry(self._url, self._file.read))

    def seek(self, offset: int, whence: int = 0) -> int:
        with url_errors_explained(self._url):
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


def _find(location: "_Location", url: str, patterns: Sequence[str], *, growing: bool) -> Listing:
    system, path = location.system, location.path
    wild = False
    try:
        info = system.info(path)
        if info["type"] != "directory" and not url.endswith("/"):
            root = path.rpartition("/")[0]
            file = location.file({**info, "name": path}, root=root)
            return Listing(root=location.url(root), files=[file], is_file=True)
    except FileNotFoundError:
        wild = glob.has_magic(path)
        if not (wild or growing):
            raise
    fixed, parts = split_at_wildcard(path.split("/")) if wild else (path.split("/"), ())
    root = "/".join(fixed)
    infos = _listed(location, root, growing=growing)
    hidden = {info["name"]: hidden_part(_below(info, root), parts) for info in infos}
    seen = [info for info in infos if not hidden[info["name"]]]
    found, broken_links = _chosen(location, seen, ("*",) if wild else patterns, root=root)
    found.hidden.extend(sorted({location.url(f"{root}/{x}") for x in hidden.values() if x}))
    if not growing:
        where = without_secrets(location.url(path))
        if not (found.files or found.refused):
            names = [_below(info, root) for info in infos]
            holds = f"; it contains {some_of(names)}" if names else ""
            no_file = f"No file in {where} matches {any_of(patterns)}{holds}"
            raise UserError(f"No file matches {where}." if wild else f"{no_file}.")
        warn_of_links(where, broken_links)
    return found


def _listed(location: "_Location", root: str, *, growing: bool) -> list[_Info]:
    """Return the details of the files in a folder, or of the files below it that match a glob."""
    system, wild = location.system, location.path != root
    try:
        infos = location.infos(system.glob if wild else system.find)
        if wild and not (infos or growing):
            system.info(root)  # raises if there is no such folder
    except FileNotFoundError:
        if not growing or system.exists(root):
            raise
        return []  # the storage has no folders, and nothing is stored there yet
    return infos


def _chosen(
    location: "_Location", infos: Sequence[_Info], patterns: Sequence[str], *, root: str
) -> tuple[Listing, list[str]]:
    """Return the listing of matching and skipped files, and the broken links that do not match."""
    found = Listing(root=location.url(root))
    broken_links: list[str] = []
    matching = matcher(patterns)
    for info in infos:
        relative = _below(info, root)
        matches = matching(relative)
        if not matches and info["type"] != "link":  # a link may lead to a folder, whatever its name
            found.unmatched.append(location.url(info["name"]))
            continue
        behind, why = location.behind(info)
        if matches and not why:
            found.files.append(location.file(behind, root=root))
        elif matches:
            odd = InputFile(path=location.url(info["name"]), relative=relative, bytes=0)
            found.refused[odd] = why
        elif why:
            broken_links.append(relative)
        else:
            found.unmatched.append(location.url(info["name"]))
    return found, broken_links


@dataclass(frozen=True, kw_only=True)
class _Location:
    """The target of a URL: an fsspec file system and a path in that system."""

    system: Any  # fsspec has no types
    path: str
    base: str
    """The part of a URL before the path; "" if the URL does not end with the path."""

    @classmethod
    def of(cls, url: str) -> "_Location":
        system, path = file_system(url)
        system.invalidate_cache()
        bare = url.rstrip("/")
        base = bare.removesuffix(path) if bare.endswith(path) else ""
        return cls(system=system, path=path.rstrip("/"), base=base)

    def url(self, path: str) -> str:
        return self.base + path if self.base else str(self.system.unstrip_protocol(path))

    def infos(self, listed: Any) -> list[_Info]:
        """Return the details of the files that fsspec's `find` or `glob` lists, sorted by name.

        An empty object named FOLDER/ stands for a folder, and is left out.
        """
        with _complete(self.system):
            infos = listed(self.path, detail=True)
        return [
            info
            for _, info in sorted(infos.items())
            if info["type"] != "directory" and not info["name"].endswith("/")
        ]

    def behind(self, info: _Info) -> tuple[_Info, str]:
        """Return the details of a file or a link's target, and why it is unusable; "" if usable."""
        if info["type"] == "file":
            return info, ""
        try:
            behind = {**self.system.info(info["name"]), "name": info["name"]}
        except FileNotFoundError:
            return info, "is a link to nothing"
        if behind["type"] == "directory":
            return info, (
                "is a link to a folder, and links behind a URL are not followed: give the folder "
                "as an input, too"
            )
        return behind, "" if behind["type"] == "file" else "is neither a file nor a folder"

    def file(self, info: _Info, *, root: str) -> InputFile:
        """Return the file that fsspec's details describe."""
        url = self.url(str(info["name"]))
        if info["size"] is None:  # as in listings of web folders
            info = {**self.system.info(info["name"]), "name": info["name"]}
        if info["size"] is None:
            raise UserError(
                f"The server of {without_secrets(url)} does not report the file's size, or cannot "
                "send parts of it; download the file first."
            )
        return InputFile(
            path=url, relative=_below(info, root), bytes=info["size"], etag=etag_of(info)
        )


@contextmanager
def _complete(system: Any) -> Iterator[None]:
    """Make a listing fail if a subfolder cannot be listed; fsspec would leave the subfolder out."""
    walks = [name for name in ("walk", "_walk") if hasattr(system, name)]
    try:
        for name in walks:
            walk = getattr(type(system), name)
            setattr(system, name, partial(walk, system, on_error="raise"))
        yield
    finally:
        for name in walks:
            vars(system).pop(name, None)


def _below(info: _Info, root: str) -> str:
    return str(info["name"]).removeprefix(root).lstrip("/")


def etag_of(info: _Info) -> str:
    """Return the tag of a file's version: etag, version or time; "" if none is known.

    Args:
        info: The result of fsspec's `info` for the file.
    """
    for key in _VERSIONS:
        if info.get(key):
            return str(info[key]).strip('"')
    return next((_instant(info[key]) for key in _TIMES if info.get(key)), "")


def _instant(time: object) -> str:
    if isinstance(time, datetime):
        # A listing and a reply for one file may differ in time zone and in fractions of a second.
        return time.astimezone(UTC).isoformat(timespec="seconds")
    return str(time)
