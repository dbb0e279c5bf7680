"""Files behind URLs: what a dataset needs of a path on a disk, on any object storage.

There nothing is renamed or appended to. A file appears whole under its final name, by one request,
or by the one that completes an upload in parts. Every request is tried again where its failure may
pass. Which library serves a protocol is fsspec's business, credentials are that library's.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from shards.errors import UserError
from shards.storage.address import Result, check_address, code_of, explained, retried

_LOG = logging.getLogger("corpusmill")


@dataclass(frozen=True, order=True, slots=True)
class RemotePath:
    """The URL of a file or folder, without a slash at its end."""

    url: str

    @classmethod
    def of(cls, url: str) -> "RemotePath":
        """Return the path of a URL.

        Raises:
            UserError: The URL holds what may be secret, or is a chain of addresses.
        """
        check_address(url, "The place")
        if odd := re.search(r"[*?\[\]]", url):
            raise UserError(
                f"The place {url} has {odd[0]!r} in its name, which libraries take for a wildcard: "
                "choose another name."
            )
        return cls(url.rstrip("/"))

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, part: str) -> "RemotePath":
        return RemotePath(f"{self.url}/{part}")

    @property
    def name(self) -> str:
        """The last part."""
        return self.url.rpartition("/")[2]

    @property
    def parent(self) -> "RemotePath":
        """The folder."""
        return RemotePath(self.url.rpartition("/")[0])

    def with_name(self, name: str) -> "RemotePath":
        """Return the path of another file of the same folder."""
        return self.parent / name

    def absolute(self) -> "RemotePath":
        """Return the path: a URL is absolute."""
        return self

    def size(self) -> int:
        """Return the size of the file in bytes; -1 if there is none."""
        try:
            info = self._do(lambda system, key: system.info(key))
        except FileNotFoundError:
            return -1
        return int(info["size"]) if info["type"] == "file" else -1

    def exists(self) -> bool:
        """Return whether there is a file; a folder is not known apart from the files in it."""
        return self.size() >= 0

    def is_file(self) -> bool:
        """Return whether there is a file."""
        return self.exists()

    def read(self, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of the file, or those from `start` to `stop`.

        Raises:
            FileNotFoundError: There is no such file.
            UserError: It cannot be read.
        """
        if stop is None:
            return bytes(self._do(lambda system, key: system.cat_file(key)))
        return self.read_ranges([(start, stop)])[0]

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of ranges within the file, fetched side by side.

        Raises:
            FileNotFoundError: There is no such file.
            UserError: It cannot be read.
        """
        wanted = [(start, stop) for start, stop in ranges]
        got: dict[tuple[int, int], bytes] = {}

        def fetch(system: Any, key: str) -> None:
            missing = [pair for pair in wanted if pair not in got]  # an attempt keeps what came
            starts, stops = [start for start, _ in missing], [stop for _, stop in missing]
            found = system.cat_ranges([key] * len(missing), starts, stops, on_error="return")
            failed: Exception | None = None
            for pair, data in zip(missing, found, strict=True):
                if isinstance(data, Exception):
                    failed = data
                elif len(data) != pair[1] - pair[0]:
                    failed = OSError(f"{len(data)} bytes came of {pair[1] - pair[0]}")
                else:
                    got[pair] = bytes(data)
            if failed is not None:
                raise failed

        self._do(fetch)
        return [got[pair] for pair in wanted]

    def write(self, data: bytes) -> None:
        """Make a file of these bytes, or replace it.

        Raises:
            UserError: It cannot be written.
        """
        self._do(lambda system, key: system.pipe_file(key, data), done="written")

    def create(self, data: bytes) -> bool:
        """Make a file of these bytes if there is none, and return whether it is ours.

        The storage decides, by a conditional request: of two writers one makes the file.

        Raises:
            UserError: It cannot be written.
        """

        def make(system: Any, key: str) -> None:
            try:
                system.pipe_file(key, data, mode="create")
            except OSError as error:
                if code_of(error) != "PreconditionFailed":  # as some servers say that it is there
                    raise
                raise FileExistsError(str(error)) from error

        try:
            self._do(make, done="written")
        except FileExistsError:
            # An answer may be lost after the file was made: then the next attempt finds our own.
            try:
                return self.read() == data
            except FileNotFoundError:  # whoever had it has just ended
                return False
        return True

    def upload(self, file: Path) -> None:
        """Make this a copy of a local file, which is there whole or not at all.

        Raises:
            UserError: It cannot be written.
        """
        self._do(lambda system, key: system.put_file(str(file), key), done="written")

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Delete the file.

        Raises:
            FileNotFoundError: There is none, unless `missing_ok`.
            UserError: It cannot be deleted.
        """
        if missing_ok and not self.exists():
            return
        self._do(lambda system, key: system.rm_file(key), done="deleted")

    def files(self) -> Mapping[str, int]:
        """Return the sizes of all files below this folder, by relative path; listed page by page.

        Raises:
            UserError: They cannot be listed.
        """

        def found(system: Any, key: str) -> dict[str, int]:
            infos = system.find(key, detail=True)
            return {
                str(name).removeprefix(key).lstrip("/"): int(info["size"])
                for name, info in infos.items()
                if info["type"] == "file" and str(name).startswith(f"{key}/")
            }

        return self._do(found, done="listed")

    def remove_all(self) -> None:
        """Delete all files below this folder.

        Raises:
            UserError: They cannot be deleted.
        """
        names = sorted(self.files())

        def remove(system: Any, key: str) -> None:
            system.rm([f"{key}/{name}" for name in names])

        if names:
            self._do(remove, done="deleted")

    def _do(self, action: Callable[[Any, str], Result], *, done: str = "read") -> Result:
        """Do something with the file system and its name of the file, several times if need be.

        What is or is not there is for the caller to judge; all else is told to the person.
        """
        absence: FileNotFoundError | FileExistsError | None = None
        with explained(self.url, "The file", done=done):
            system, key = file_system(self.url)
            try:
                return retried(self.url, lambda: action(system, key))
            except FileExistsError as error:
                absence = error
            except FileNotFoundError as error:
                if done == "written":  # there is no such bucket
                    raise
                absence = error
        raise absence


AnyPath = Path | RemotePath
"""Where a file lies: on a disk, or behind a URL."""


def any_path(text: str) -> AnyPath:
    """Return the path that a person gave, as a path or a URL.

    Raises:
        UserError: The URL holds what may be secret, or is a chain of addresses.
    """
    text = text.removeprefix("file://")
    return RemotePath.of(text) if "://" in text else Path(text)


def relative(path: AnyPath, folder: AnyPath) -> str:
    """Return the path of a file in a folder as a dataset names it: with forward slashes.

    Raises:
        ValueError: The file is not in that folder.
    """
    if isinstance(path, Path) and isinstance(folder, Path):
        return path.relative_to(folder).as_posix()
    if not str(path).startswith(f"{folder}/"):
        raise ValueError(f"{path} is not in {folder}")
    return str(path).removeprefix(f"{folder}/")


def file_system(url: str) -> tuple[Any, str]:
    """Return fsspec's file system for a URL, and its own name of what is there.

    It remembers no listing and tries a request again at once, a few times: for one of many that are
    made together. All else is for `retried`.
    """
    # An extra that takes a while to import: only where there is a URL.
    import fsspec  # noqa: PLC0415 - see above

    scheme = urlsplit(url).scheme
    system, key = fsspec.url_to_fs(url, **_settings(scheme))
    if scheme in _S3:
        system.retries = 1
    return system, str(key).rstrip("/")


_S3 = ("s3", "s3a")


def _settings(scheme: str) -> dict[str, Any]:
    """Return what a protocol's library is told."""
    import fsspec  # noqa: PLC0415 - see file_system

    settings: dict[str, Any] = {"use_listings_cache": False}
    if scheme in _S3:
        own = fsspec.config.conf.get("s3", {}).get("config_kwargs", {})
        bounds = {"connect_timeout": 10, "read_timeout": 60, "max_pool_connections": 32}
        retries = {"mode": "standard", "total_max_attempts": 3}
        settings["config_kwargs"] = {**bounds, "retries": retries, **own}
    return settings
