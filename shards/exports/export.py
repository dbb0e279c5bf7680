"""Writes an export file by file. A file that exists is complete, so a rerun continues the export.

    .export.json   the origin of the export; written first
    FILES          the files of the format, each complete or absent
    export.json    the same as .export.json; written when all files are there

The content of the files depends only on the dataset and the settings, not on interruptions.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from shards.commands.progress import track_files
from shards.errors import UserError
from shards.exports.formats import ExportFile, ExportSettings
from shards.manifest import Manifest
from shards.records import seal, to_json
from shards.storage.disk import disk_errors_explained
from shards.storage.files import TEMPORARY, atomic_write, hard_link, read_json, write_json
from shards.storage.lock import lock_dir

NAME = "export.json"
_BEGUN = ".export.json"
_OWN = (".lock", TEMPORARY)
"""Prefixes of our files, which are ignored when a folder is checked for other files."""

KEPT, LINKED, WRITTEN = "already there", "hard link", "written"


def export_origin(manifest: Manifest, newest: Manifest, settings: ExportSettings) -> dict[str, Any]:
    """Return the origin of an export: everything that its bytes depend on, as JSON.

    Args:
        manifest: The manifest that is exported.
        newest: The newest manifest of the dataset, whose removals count.
        settings: The settings of the export.
    """
    return {
        "corpus": manifest.corpus,
        "dataset": manifest.identity,
        "manifest": manifest.number,
        "removals": [removal.documents.path for removal in newest.removals],
        "settings": to_json(settings),
    }


def write_export(
    output: Path, origin: Mapping[str, Any], files: Sequence[ExportFile]
) -> Iterator[tuple[ExportFile, str]]:
    """Write all files; yield each finished file with KEPT, LINKED or WRITTEN.

    Raises:
        UserError: The folder contains other files or another export, or the disk has too little
            space.
        DamageError: A file of the dataset is missing or damaged.
    """
    _check_folder(output, origin)  # first: a folder with other files gets no lock file
    with lock_dir(output):
        for path in output.rglob(f"{TEMPORARY}*"):  # left by a killed process
            path.unlink(missing_ok=True)
        if not (output / NAME).exists():
            write_json(output / _BEGUN, seal(origin))
        _check_room(output, [file for file in files if not (output / file.path).exists()])
        named = track_files("export", [(file.path, file) for file in files])
        for _, file in named:
            is_there = (output / file.path).exists()
            yield file, KEPT if is_there else _write(output, file, copy=origin["settings"]["copy"])
        if (output / _BEGUN).exists():
            (output / _BEGUN).replace(output / NAME)


def _check_folder(output: Path, origin: Mapping[str, Any]) -> None:
    """Check that a folder is empty or contains the same export.

    Raises:
        UserError: The folder contains other files or another export.
    """
    with disk_errors_explained(output):
        if output.exists() and not output.is_dir():
            raise UserError(f"--output {output} is a file: give an empty folder.")
        names = {path.name for path in output.glob("*") if not path.name.startswith(_OWN)}
    present = next((name for name in (NAME, _BEGUN) if name in names), None)
    if present is None:
        if names:
            more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
            raise UserError(
                f"--output {output} contains {min(names)}{more}, which no export has written: give "
                "an empty folder."
            )
        return
    if read_json(output / present) != seal(origin):
        raise UserError(
            f"--output {output} contains another export, described by its {present}: of another "
            "dataset or manifest, with other flags, or made before more documents were removed. "
            "Give an empty folder, or delete that one first."
        )


def _check_room(output: Path, files: Sequence[ExportFile]) -> None:
    wanted = sum(file.bytes for file in files if file.same is None)
    if wanted > (free := shutil.disk_usage(output).free):
        raise UserError(
            f"the export to {output} takes about {wanted / 1e6:,.0f} MB, and its disk has "
            f"{free / 1e6:,.0f} MB free: make room, or export fewer sources (--source)."
        )


def _write(output: Path, file: ExportFile, *, copy: bool) -> str:
    """Write a file or link it to the shard with the same bytes; return LINKED or WRITTEN."""
    if file.same is not None and not copy and hard_link(file.same(), output / file.path):
        return LINKED
    with atomic_write(output / file.path) as handle:
        for block in file.content():
            handle.write(block)
    return WRITTEN
