"""Tracks arriving files: finds those that have settled, and warns about those that cannot be added.

A file has settled once it has not changed for a while; a file that is renamed into place with an
older time has settled at once. The state depends only on the files that scans found, and on the
times of the scans.
"""

import logging
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace

from pipelines.read.files import InputFile
from pipelines.read.listing import Listing
from pipelines.read.remarks import left_out

UNFINISHED = (".tmp", ".part", ".partial", ".crdownload")
"""Endings of the names of files that are still being written."""

NAMED_AFTER = 3600.0
"""The number of seconds after which the log names a file that keeps changing."""

FIRST_PAUSE = 60.0
"""The seconds until a failed file is tried again; each failure doubles them, up to NAMED_AFTER."""

MAX_NAMED = 5
"""The maximum number of files that one message names."""

GROWING = "keeps changing: it is added once it has settled"
UNMATCHED = "has a name that does not match"
CHANGED = "is in the dataset and has changed since: it is not added again"

Name = tuple[str, str]
"""The source of a file, and its path below the input."""

Version = tuple[int, int, str]
"""The size, time and etag of a file."""

_LOG = logging.getLogger("corpusmill")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arrival:
    """A file that is not in any generation yet."""

    file: InputFile
    first: float
    """When a file with this name was first seen, in seconds since 1970."""
    since: float
    """When the file was first seen in its current version, in seconds since 1970."""
    why: str = ""
    """Why the current version could not be processed; "" if it did not fail."""
    pause: float = 0.0
    """The number of seconds from a failure until the file is tried again."""
    again: float = 0.0
    """When the file is tried again, in seconds since 1970."""

    def has_settled(self, settle: float, now: float) -> bool:
        mtime = self.file.mtime_ns / 1e9
        return now - self.since >= settle or (mtime > 0 and now - mtime >= settle)


class Arrivals:
    """The files that wait for a generation, according to the scans so far."""

    def __init__(self, settle: float, *, unmatched: Iterable[str] = ()) -> None:
        """Start with no files.

        Args:
            settle: The number of seconds without a change after which a file has settled.
            unmatched: Paths of files whose names do not match the pattern, which the log has
                already named.
        """
        self._settle = settle
        self._files: dict[Name, _Arrival] = {}
        self._hidden: dict[Name, _Arrival] = {}
        """Files that cannot be read now, or are in a folder that cannot be listed."""
        self._odd = {path: (UNMATCHED, 0.0, True) for path in unmatched}
        """For each path, why the file is not added, since when, and whether this was logged."""

    def scan(self, listing: Listing, *, dataset: Mapping[Name, Version | None], now: float) -> None:
        """Update the state from a listing of the inputs, and log new problems.

        Args:
            listing: The files of the inputs.
            dataset: The versions of the files that the dataset was made from; None if a version is
                not known.
            now: The time, in seconds since 1970.
        """
        before, self._files = self._files | self._hidden, {}
        odd = {file.path: why for file, why in listing.refused.items()}
        odd |= dict.fromkeys(listing.unmatched, UNMATCHED)
        odd = {path: why for path, why in odd.items() if not _unfinished(path)}
        for file in listing.files:
            name = file.name
            if name in dataset:
                if dataset[name] not in (None, file.version):
                    odd[file.path] = CHANGED
            elif not _unfinished(file.path):
                seen = self._files[name] = _seen(before.get(name), file, now)
                if now - seen.first >= NAMED_AFTER and not seen.has_settled(self._settle, now):
                    odd[file.path] = GROWING
        self._hidden = {
            name: each
            for name, each in before.items()
            if name not in self._files and name not in dataset and listing.may_have(*name)
        }
        self._warn_once(odd, now)

    def ready(self, now: float) -> dict[InputFile, float]:
        """Return the files that have settled, each with the time when it was first seen.

        Failed files are left out until their next attempt is due.
        """
        return {
            each.file: each.first
            for each in self._files.values()
            if each.has_settled(self._settle, now) and now >= each.again
        }

    def first_seen(self) -> dict[InputFile, float]:
        """Return when each waiting file was first seen, in seconds since 1970."""
        return {each.file: each.first for each in self._files.values()}

    def failed(self) -> dict[InputFile, str]:
        """Return the files that could not be processed, with the reasons."""
        return {each.file: each.why for each in self._files.values() if each.why}

    def record_attempts(
        self, processed: Iterable[InputFile], *, failed: Mapping[InputFile, str], now: float
    ) -> None:
        """Record which files were processed; log the failed files, and leave them out for a while.

        Args:
            processed: The processed files, some of which may have failed before.
            failed: The files that could not be processed, with the reasons.
            now: The time, in seconds since 1970.
        """
        for file in processed:
            known = self._files[file.name]
            self._files[file.name] = replace(known, why="", pause=0.0)
        for file, why in failed.items():
            known = self._files[file.name]
            pause = min(max(FIRST_PAUSE, 2 * known.pause), NAMED_AFTER)
            self._files[file.name] = replace(known, why=why, pause=pause, again=now + pause)
        _warn(
            (file.path, f"failed and is tried again later: {why}") for file, why in failed.items()
        )

    def forget(self, dataset: Container[Name]) -> None:
        """Forget the files that are now in a generation."""
        self._files = {name: each for name, each in self._files.items() if name not in dataset}

    def _warn_once(self, odd: Mapping[str, str], now: float) -> None:
        """Log, once, each file that is not added, if its problem lasts for the time to settle."""
        known = self._odd
        self._odd = {}
        new = []
        for path, why in odd.items():
            old, since, logged = known.get(path, ("", now, False))
            if old != why:
                since, logged = now, False
            if not logged and now - since >= self._settle:
                new.append((path, why))
                logged = True
            self._odd[path] = why, since, logged
        for line in left_out([path for path, why in new if why == UNMATCHED]):
            _LOG.warning("%s", line)
        _warn(each for each in new if each[1] != UNMATCHED)


def _seen(before: _Arrival | None, file: InputFile, now: float) -> _Arrival:
    """Return the state of a file whose current version a scan has just seen."""
    if before is None:
        return _Arrival(file=file, first=now, since=now)
    if before.file.version != file.version:
        return _Arrival(file=file, first=before.first, since=now)
    return before


def _warn(odd: Iterable[tuple[str, str]]) -> None:
    """Log warnings about some files, given as paths and problems."""
    pairs = [*odd]
    for path, why in pairs[:MAX_NAMED]:
        _LOG.warning("%s %s", path, why)
    if len(pairs) > MAX_NAMED:
        _LOG.warning("and %d more files with such problems", len(pairs) - MAX_NAMED)


def _unfinished(path: str) -> bool:
    return path.lower().endswith(UNFINISHED)
