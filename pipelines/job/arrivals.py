"""Files as they arrive: which ones have settled, and what the log says about the others.

A file has settled once it has not changed for a while; one that is renamed into place with an older
time has settled at once. All of it depends only on the files that scans found, and when.
"""

import logging
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace

from pipelines.read.files import InputFile
from pipelines.read.listing import Listing
from pipelines.read.remarks import left_out

UNFINISHED = (".tmp", ".part", ".partial", ".crdownload")
"""Endings of files that are still being written."""

NAMED_AFTER = 3600.0
"""Seconds after which a file that keeps changing is named."""

FIRST_PAUSE = 60.0
"""Seconds until a file that failed is tried again; twice as long each time, up to NAMED_AFTER."""

MAX_NAMED = 5
"""Files that are named at once."""

GROWING = "keeps changing: it is taken once it does not"
UNMATCHED = "has a name that does not match"
BACK = "is in the dataset, and has another size or time now: it is not taken again"

Name = tuple[str, str]
"""Source and path below the input."""

Version = tuple[int, int, str]
"""Size, time and etag."""

_LOG = logging.getLogger("corpusmill")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arrival:
    """A file that is in no generation yet."""

    file: InputFile
    first: float
    """When a file of this name was first seen, in seconds since 1970."""
    since: float
    """When it was first seen as it is."""
    why: str = ""
    """Why it could not be mapped, as it is; empty if that was not tried."""
    pause: float = 0.0
    """Seconds after that until it is tried again."""
    again: float = 0.0
    """When it is tried again."""

    def has_settled(self, settle: float, now: float) -> bool:
        mtime = self.file.mtime_ns / 1e9
        return now - self.since >= settle or (mtime > 0 and now - mtime >= settle)


class Arrivals:
    """The files that wait for a generation, as one scan after the other finds them."""

    def __init__(self, settle: float, *, unmatched: Iterable[str] = ()) -> None:
        """Know of none.

        Args:
            settle: Seconds without a change after which a file has settled.
            unmatched: Paths of files whose names do not match, as the log says already.
        """
        self._settle = settle
        self._files: dict[Name, _Arrival] = {}
        self._hidden: dict[Name, _Arrival] = {}
        """Those that cannot be read now, or are in a folder that cannot be listed."""
        self._odd = {path: (UNMATCHED, 0.0, True) for path in unmatched}
        """Why a path is not added, since when, and whether that was logged; by path."""

    def scan(self, listing: Listing, *, dataset: Mapping[Name, Version | None], now: float) -> None:
        """Learn what is there now, and name what has become odd since the last scan.

        Args:
            listing: The files of the inputs.
            dataset: The files that the dataset was made from, None where the version is not known.
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
                    odd[file.path] = BACK
            elif not _unfinished(file.path):
                seen = self._files[name] = _seen(before.get(name), file, now)
                if now - seen.first >= NAMED_AFTER and not seen.has_settled(self._settle, now):
                    odd[file.path] = GROWING
        self._hidden = {
            name: each
            for name, each in before.items()
            if name not in self._files and name not in dataset and listing.may_have(*name)
        }
        self._name_odd(odd, now)

    def ready(self, now: float) -> dict[InputFile, float]:
        """Return the files that have settled, as `first_seen` does.

        Those that failed are left out until they are due again.
        """
        return {
            each.file: each.first
            for each in self._files.values()
            if each.has_settled(self._settle, now) and now >= each.again
        }

    def first_seen(self) -> dict[InputFile, float]:
        """Return when each file that waits was first seen, in seconds since 1970."""
        return {each.file: each.first for each in self._files.values()}

    def failed(self) -> dict[InputFile, str]:
        """Return the files that could not be mapped, and why."""
        return {each.file: each.why for each in self._files.values() if each.why}

    def tried(
        self, mapped: Iterable[InputFile], *, failed: Mapping[InputFile, str], now: float
    ) -> None:
        """Learn which files are mapped, name those that cannot be, and leave them out for a while.

        Args:
            mapped: Files that are, some of which may have failed before.
            failed: Files that are not, and why.
            now: The time, in seconds since 1970.
        """
        for file in mapped:
            known = self._files[file.name]
            self._files[file.name] = replace(known, why="", pause=0.0)
        for file, why in failed.items():
            known = self._files[file.name]
            pause = min(max(FIRST_PAUSE, 2 * known.pause), NAMED_AFTER)
            self._files[file.name] = replace(known, why=why, pause=pause, again=now + pause)
        _name(
            (file.path, f"failed and is tried again later: {why}") for file, why in failed.items()
        )

    def forget(self, dataset: Container[Name]) -> None:
        """Forget the files that are in a generation now."""
        self._files = {name: each for name, each in self._files.items() if name not in dataset}

    def _name_odd(self, odd: Mapping[str, str], now: float) -> None:
        """Name what is not taken, each once, if it is still so after the time to settle."""
        known = self._odd
        self._odd = {}
        new = []
        for path, why in odd.items():
            old, since, said = known.get(path, ("", now, False))
            if old != why:
                since, said = now, False
            if not said and now - since >= self._settle:
                new.append((path, why))
                said = True
            self._odd[path] = why, since, said
        for line in left_out([path for path, why in new if why == UNMATCHED]):
            _LOG.warning("%s", line)
        _name(each for each in new if each[1] != UNMATCHED)


def _seen(before: _Arrival | None, file: InputFile, now: float) -> _Arrival:
    """Return the state of a file after a scan saw it as it is now."""
    if before is None:
        return _Arrival(file=file, first=now, since=now)
    if before.file.version != file.version:
        return _Arrival(file=file, first=before.first, since=now)
    return before


def _name(odd: Iterable[tuple[str, str]]) -> None:
    """Say what is odd about some of the files."""
    told = [*odd]
    for path, why in told[:MAX_NAMED]:
        _LOG.warning("%s %s", path, why)
    if len(told) > MAX_NAMED:
        _LOG.warning("and %d files more like these", len(told) - MAX_NAMED)


def _unfinished(path: str) -> bool:
    return path.lower().endswith(UNFINISHED)
