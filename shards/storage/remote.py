"""Files behind URLs: a class with the interface of pathlib's Path.

Callers accept both kinds of path (AnyPath). Actions that pathlib lacks, or does not do durably, are
functions of files.py, which accept both too; only this package distinguishes the two.

Nothing is renamed or appended to. A file appears whole under its final name, by one request, or by
the request that completes a multipart upload. A failed request is repeated as long as the failure
may be transient. fsspec chooses the library for a protocol, and that library finds the credentials.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from shards.errors import UserError
from shards.storage.address import Result, check_address, retry, s3_code, url_errors_explained

_LOG = logging.getLogger("corpusmill")


@dataclass(frozen=True, order=True, slots=True)
class RemotePath:
    """The URL of a file or folder, which does not end with a slash."""

    url: str

    @classmethod
    def of(cls, url: str) -> "RemotePath":
        """Return the path of a URL.

        Raises:
            UserError: The URL contains a secret or a wildcard, or is a chain of addresses.
        """
        check_address(url, "The address")
        if wildcard := re.search(r"[*?\[\]]", url):
            raise UserError(
                f"The address {url} contains {wildcard[0]!r}, which libraries treat as a "
                "wildcard: choose another name."
            )
        return cls(url.rstrip("/"))

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, part: str) -> "RemotePath":
        return RemotePath(f"{self.url}/{part}")

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.url.rpartition("/")[2]

    @property
    def parent(self) -> "RemotePath":
        """The folder that contains the file."""
        return RemotePath(self.url.rpartition("/")[0])

    def with_name(self, name: str) -> "RemotePath":
        """Return the path of another file in the same folder."""
        return self.parent / name

    def absolute(self) -> "RemotePath":
        """Return the path itself: a URL is absolute."""
        return self

    def resolve(self) -> "RemotePath":
        """Return the path itself: there are no links."""
        return self

    def is_symlink(self) -> bool:
        """Return False: there are no links."""
        return False

    def size(self) -> int:
        """Return the size of the file in bytes, or -1 if there is no such file."""
        try:
            info = self._request(lambda system, key: system.info(key))
        except FileNotFoundError:
            return -1
        return int(info["size"]) if info["type"] == "file" else -1

    def exists(self) -> bool:
        """Return whether the file exists; a folder exists only if there are files in it."""
        return self.size() >= 0

    is_file = exists

    def read(self, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of the file, all of them or those from `start` to `stop`.

        Raises:
            FileNotFoundError: There is no such file.
            UserError: It cannot be read.
        """
        if stop is None:
            return bytes(self._request(lambda system, key: system.cat_file(key)))
        return self.read_ranges([(start, stop)])[0]

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of ranges within the file, fetched concurrently.

        Raises:
            FileNotFoundError: There is no such file.
            UserError: It cannot be read.
        """
        wanted = [(start, stop) for start, stop in ranges]
        received: dict[tuple[int, int], bytes] = {}

        def fetch(system: Any, key: str) -> None:
            # Ranges that an earlier attempt received are kept.
            missing = [pair for pair in wanted if pair not in received]
            starts, stops = [start for start, _ in missing], [stop for _, stop in missing]
            answers = system.cat_ranges([key] * len(missing), starts, stops, on_error="return")
            failure: Exception | None = None
            for pair, answer in zip(missing, answers, strict=True):
                if isinstance(answer, Exception):
                    failure = answer
                elif len(answer) != pair[1] - pair[0]:
                    failure = OSError(f"received {len(answer)} of {pair[1] - pair[0]} bytes")
                else:
                    received[pair] = bytes(answer)
            if failure is not None:
                raise failure

        self._request(fetch)
        return [received[pair] for pair in wanted]

    def write(self, data: bytes) -> None:
        """Write the file with these bytes, replacing it if it exists.

        Raises:
            UserError: It cannot be written.
        """
        self._request(lambda system, key: system.pipe_file(key, data), done="written")

    def create(self, data: bytes) -> bool:
        """Create the file with these bytes unless it exists; return whether this call created it.

        A conditional request makes the storage decide: of two writers only one creates the file.

        Raises:
            UserError: It cannot be written.
        """

        def create(system: Any, key: str) -> None:
            try:
                system.pipe_file(key, data, mode="create")
            except OSError as error:
                if s3_code(error) != "PreconditionFailed":  # S3's code for a file that exists
                    raise
                raise FileExistsError(str(error)) from error

        try:
            self._request(create, done="written")
        except FileExistsError:
            # The response may have been lost after we created the file; then the file is ours.
            try:
                return self.read() == data
            except FileNotFoundError:  # its owner has deleted it in the meantime
                return False
        return True

    def upload(self, file: Path) -> None:
        """Copy a local file to this path, where it appears whole or not at all.

        Raises:
            UserError: It cannot be written.
        """
        self._request(lambda system, key: system.put_file(str(file), key), done="written")

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Delete the file.

        Raises:
            FileNotFoundError: There is no such file, unless `missing_ok`.
            UserError: It cannot be deleted.
        """
        try:
            self._request(lambda system, key: system.rm_file(key), done="deleted")
        except FileNotFoundError:
            if not missing_ok:
                raise

    def files(self) -> Mapping[str, int]:
        """Return the sizes in bytes of all files below this folder, by relative path.

        Raises:
            UserError: They cannot be listed.
        """

        def find(system: Any, key: str) -> dict[str, int]:
            infos = system.find(key, detail=True)
            return {
                str(name).removeprefix(key).lstrip("/"): int(info["size"])
                for name, info in infos.items()
                if info["type"] == "file" and str(name).startswith(f"{key}/")
            }

        return self._request(find, done="listed")

    def remove(self, names: Sequence[str]) -> None:
        """Delete files below this folder, by relative path.

        Raises:
            UserError: They cannot be deleted.
        """

        def remove(system: Any, key: str) -> None:
            system.rm([f"{key}/{name}" for name in names])

        if names:
            self._request(remove, done="deleted")

    def _request(self, action: Callable[[Any, str], Result], *, done: str = "read") -> Result:
        """Return the result of `action` for fsspec's file system and the key of this file.

        Transient failures are retried. FileExistsError and FileNotFoundError are passed to the
        caller; any other failure becomes a UserError.
        """
        existence_error: FileNotFoundError | FileExistsError | None = None
        with url_errors_explained(self.url, "The file", done=done):
            system, key = file_system(self.url)
            try:
                return retry(self.url, lambda: action(system, key))
            except FileExistsError as error:
                existence_error = error
            except FileNotFoundError as error:
                if done == "written":  # the bucket is missing
                    raise
                existence_error = error
        raise existence_error


AnyPath = Path | RemotePath
"""Path of a file on a disk or behind a URL."""


def any_path(text: str) -> AnyPath:
    """Convert a path or URL that a user gave to a path.

    Raises:
        UserError: The URL contains a secret or a wildcard, or is a chain of addresses.
    """
    text = text.removeprefix("file://")
    return RemotePath.of(text) if "://" in text else Path(text)


def relative(path: AnyPath, folder: AnyPath) -> str:
    """Return the path of a file relative to a folder, with forward slashes as in a manifest.

    Raises:
        ValueError: The file is not in that folder.
    """
    if isinstance(path, Path) and isinstance(folder, Path):
        return path.relative_to(folder).as_posix()
    if not str(path).startswith(f"{folder}/"):
        raise ValueError(f"{path} is not in {folder}")
    return str(path).removeprefix(f"{folder}/")


def file_system(url: str) -> tuple[Any, str]:
    """Return fsspec's file system for a URL, and the key of the file or folder in it.

    The file system caches no listings. It repeats a request immediately, up to twice, which helps
    when one of many concurrent requests fails; `retry` handles longer outages.
    """
    # Part of an extra and slow to import: imported only if a URL is used.
    import fsspec  # noqa: PLC0415 - see above

    scheme = urlsplit(url).scheme
    system, key = fsspec.url_to_fs(url, **_settings(scheme))
    if scheme in _S3:
        system.retries = 1
    return system, str(key).rstrip("/")


_S3 = ("s3", "s3a")


def _settings(scheme: str) -> dict[str, Any]:
    """Return the settings for a protocol's library."""
    import fsspec  # noqa: PLC0415 - see file_system

    settings: dict[str, Any] = {"use_listings_cache": False}
    if scheme in _S3:
        user = fsspec.config.conf.get("s3", {}).get("config_kwargs", {})
        bounds = {"connect_timeout": 10, "read_timeout": 60, "max_pool_connections": 32}
        retries = {"mode": "standard", "total_max_attempts": 3}
        settings["config_kwargs"] = {**bounds, "retries": retries, **user}
    return settings
