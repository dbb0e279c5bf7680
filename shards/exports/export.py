"""Writes an export: file by file, so that the same command goes on where another was killed.

    FILES                  as the format has them
    .export/origin.json    what is exported, and how; written first
    .export/FILE.json      size and crc32c of a finished file
    export.json            all of that; written last, when .export goes

A file is whole or absent. Finished ones are compared with their crc32c and kept; what they are made
of depends on the dataset and the settings alone, so that the files are the same however often the
work was interrupted.
"""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from shards.errors import UserError
from shards.exports.file import ExportFile, Settings
from shards.format import BIN
from shards.manifest import Manifest
from shards.paths import check_links
from shards.reader import Dataset
from shards.records import T, sealed, unsealed
from shards.storage.disk import disk_errors_explained
from shards.storage.files import TEMPORARY, FileEntry, atomic_write, intact, read_json, write_json
from shards.storage.links import link
from shards.storage.lock import locked

NAME = "export.json"
RECORDS = ".export"
KEPT, WRITTEN = "kept", "written"

_LOCK = ".lock"
_UNFINISHED = re.compile(rf"{re.escape(TEMPORARY)}[0-9a-f]{{32}}-.+", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What an export is made of, and how: all that its bytes depend on."""

    corpus: str
    dataset: str
    """The manifest's identity."""
    manifest: int
    removals: tuple[str, ...]
    settings: Settings

    @classmethod
    def of(cls, dataset: Dataset, now: Manifest, settings: Settings) -> "Origin":
        """Return the origin of an export.

        Args:
            dataset: As it is exported.
            now: Its manifest as it is now, whose removals count.
            settings: Of the export.
        """
        return cls(
            corpus=dataset.manifest.corpus,
            dataset=dataset.manifest.identity,
            manifest=dataset.manifest.number,
            removals=tuple(removal.documents.path for removal in now.removals),
            settings=settings,
        )


@dataclass(frozen=True, kw_only=True)
class _Record:
    """What `export.json` holds."""

    origin: Origin
    files: Mapping[str, FileEntry]


@dataclass(frozen=True, kw_only=True)
class Made:
    """A file that is where it belongs."""

    path: str
    bytes: int
    how: str
    """KEPT: it was there, WRITTEN, or which kind of link it is."""


class Export:
    """The files of an export in their folder."""

    def __init__(self, output: Path, origin: Origin, *, copy: bool = False) -> None:
        """Prepare it.

        Args:
            output: The folder.
            origin: What is exported.
            copy: Write every file, also where a link would do.
        """
        self._output = output
        self._origin = origin
        self._copy = copy
        self._records = output / RECORDS

    def run(
        self, files: Sequence[ExportFile], *, progress: Callable[[int], None] = lambda _: None
    ) -> Iterator[Made]:
        """Write all files, and yield each once it is complete.

        Args:
            files: In the order in which they are written.
            progress: Is told of bytes as they are written.

        Raises:
            UserError: The folder holds something else, or has not enough room.
            DamageError: A file of the dataset is missing or damaged.
        """
        check_links(self._output, [file.path for file in files])
        known = self._known()  # before a lock file is left in a folder of others
        with locked(self._output):
            self._remove_unfinished(files)
            write_json(self._records / "origin.json", sealed(self._origin))
            self._check_room(files, known)
            made: dict[str, FileEntry] = {}
            for file in files:
                entry = known.get(file.path) or self._recorded(file.path)
                how = KEPT
                path = self._output / file.path
                is_link = self._copy and path.exists() and path.stat().st_nlink > 1
                if entry is None or is_link or not intact(path, entry):
                    entry, how = self._make(file, progress)
                    write_json(self._record(file.path), sealed(entry))
                made[file.path] = entry
                yield Made(path=file.path, bytes=entry.bytes, how=how)
            write_json(self._output / NAME, sealed(_Record(origin=self._origin, files=made)))
            self._remove_records(files)

    # What is there

    def _known(self) -> Mapping[str, FileEntry]:
        """Return the files of a complete export of the same, after checking what the folder holds.

        Raises:
            UserError: It holds something else.
        """
        with disk_errors_explained(self._output):
            if self._output.exists() and not self._output.is_dir():
                raise UserError(f"--output {self._output} is a file: name an empty folder.")
            names = {path.name for path in self._output.glob("*")} - {_LOCK}
        if NAME in names:
            record = self._read(_Record, self._output / NAME)
            self._check_origin(record.origin)
            return record.files
        if (self._records / "origin.json").exists():
            self._check_origin(self._read(Origin, self._records / "origin.json"))
        elif others := sorted(names - {RECORDS}):
            raise UserError(
                f"--output {self._output} exists and holds {others[0]}"
                + (f" and {len(others) - 1:,} more" if len(others) > 1 else "")
                + ", which no export has put there: name an empty folder."
            )
        return {}

    def _read(self, kind: type[T], path: Path) -> T:
        try:
            return unsealed(kind, read_json(path), where=path.name)
        except (ValueError, UserError) as error:
            raise UserError(
                f"{path} does not say what was exported ({error}): delete {self._output} and run "
                "the same command again, or name an empty folder."
            ) from error

    def _check_origin(self, present: Origin) -> None:
        own = self._origin
        if present == own:
            return
        if present.settings != own.settings:
            what = f"an export --to {present.settings.format} with other settings"
        elif present.dataset != own.dataset:
            what = f"an export of another dataset ({present.corpus}, manifest {present.manifest})"
        else:
            what = "an export of this dataset from before more of its documents were removed"
        raise UserError(
            f"--output {self._output} holds {what}: name an empty folder, or delete that one first."
        )

    def _recorded(self, path: str) -> FileEntry | None:
        record = self._record(path)
        if not record.exists():
            return None
        try:
            return unsealed(FileEntry, read_json(record), where=record.name)
        except (ValueError, UserError):
            return None

    def _record(self, path: str) -> Path:
        return self._records / f"{path}.json"

    def _remove_unfinished(self, files: Sequence[ExportFile]) -> None:
        """Delete the unfinished files of a process that was killed."""
        folders = {(folder / file.path).parent for file in files for folder in self._folders}
        for folder in folders | set(self._folders):
            with disk_errors_explained(folder):
                for path in [*folder.glob(f"{TEMPORARY}*")]:
                    if _UNFINISHED.fullmatch(path.name):
                        path.unlink(missing_ok=True)

    @property
    def _folders(self) -> tuple[Path, Path]:
        return self._output, self._records

    def _remove_records(self, files: Sequence[ExportFile]) -> None:
        paths = [self._records / "origin.json", *(self._record(file.path) for file in files)]
        with suppress(OSError):  # something else is in it
            for path in paths:
                path.unlink(missing_ok=True)
            for folder in sorted({path.parent for path in paths}, reverse=True):
                folder.rmdir()

    # What is written

    def _check_room(self, files: Sequence[ExportFile], known: Mapping[str, FileEntry]) -> None:
        wanted = sum(
            file.bytes
            for file in files
            if not (known.get(file.path) or self._recorded(file.path) or self._linked_from(file))
        )
        if wanted > (free := shutil.disk_usage(self._output).free):
            raise UserError(
                f"about {wanted / 1e6:,.0f} MB are to be written to {self._output}, and its disk "
                f"has {free / 1e6:,.0f} MB free: make room, or export fewer sources (--source)."
            )

    def _linked_from(self, file: ExportFile) -> Path | None:
        """Return the file of the dataset that may stand for one of the export."""
        if file.shard is None or self._copy:
            return None
        kept, piece = file.shard
        source = kept.path(piece)
        if not isinstance(source, Path) or not source.exists():
            return None
        same = source.stat().st_dev == self._output.stat().st_dev
        return source if same else None

    def _make(self, file: ExportFile, progress: Callable[[int], None]) -> tuple[FileEntry, str]:
        path = self._output / file.path
        source = self._linked_from(file)
        if source is not None and file.shard is not None:
            kept, piece = file.shard
            kept.shard(piece)  # reads and checks it
            if kind := link(source, path):
                return piece.entry.files[BIN], kind
        with atomic_write(path) as handle:
            for block in file.content():
                progress(handle.write(block))
        return handle.entry, WRITTEN
