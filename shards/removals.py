"""Removed documents: rows of shards that stay on disk and are no longer trained on.

A removal is an Arrow IPC file with the columns of `SCHEMA`, sorted by them; the manifest names it.
Windows leave its rows out; nothing else about a shard changes, so that all other windows stay the
same.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shards.commands.output import quantity
from shards.errors import DamageError
from shards.manifest import Manifest, TableEntry, read_manifest
from shards.paths import check_links
from shards.storage.arrow import check_values, read_table, reraise_as_damage
from shards.storage.files import read_verified
from shards.storage.remote import AnyPath
from shards.writer import write_named

FOLDER = "removals"
"""The folder of a dataset's removals."""

Rows = NDArray[np.int64]
"""Distinct rows of one shard, sorted."""

SCHEMA = pa.schema(
    [
        pa.field("generation", pa.string(), nullable=False),  # the name, such as g0001-3f9c12ab
        pa.field("source", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),  # train or validation
        pa.field("shard", pa.int32(), nullable=False),  # index within generation, source and split
        pa.field("row", pa.int64(), nullable=False),
    ]
)
"""The columns of a removal, which has a row per document."""


def removed_rows(directory: AnyPath, manifest: Manifest) -> dict[str, Rows]:
    """Return the removed rows by the path of their shard's entry, for shards that have any.

    Raises:
        DamageError: a removal is missing or unreadable, or names rows that the dataset lacks.
    """
    entries = {location.key: location.entry for location in manifest.locations()}
    rows_by_path: defaultdict[str, list[Rows]] = defaultdict(list)
    for removal in manifest.removals:
        path = directory / removal.documents.path
        for key, rows in _read(path, removal.documents).items():
            entry = entries.get(key)
            if entry is None or rows.min() < 0 or rows.max() >= entry.documents:
                raise DamageError(
                    f"{path} removes rows of {'/'.join(map(str, key))} that this dataset does not "
                    "have: restore the removal or the manifest from a copy."
                )
            rows_by_path[entry.path].append(rows)
    return {path: np.unique(np.concatenate(rows)) for path, rows in rows_by_path.items()}


def current_removals(directory: AnyPath, manifest: Manifest) -> tuple[Manifest, dict[str, Rows]]:
    """Return a dataset's newest manifest and all rows removed so far, as `removed_rows` does.

    If the dataset was overwritten or compacted after `manifest` was read, `manifest` is used
    instead of the newest one. Rows of shards that `manifest` does not name are left out.
    """
    newest = read_manifest(directory)
    if newest.lineage != manifest.lineage:
        newest = manifest
    own = {location.entry.path for location in manifest.locations()}
    removed = removed_rows(directory, newest)
    return newest, {path: rows for path, rows in removed.items() if path in own}


def write_removal(
    directory: AnyPath, number: int, rows: Sequence[tuple[str, str, str, int, int]]
) -> TableEntry:
    """Write the removal of manifest `number` to a file named by its checksum; return its entry.

    Args:
        directory: the dataset's folder.
        number: the number of the manifest that will name the removal.
        rows: the values of `SCHEMA` for each document, in any order, without duplicates.
    """
    columns = [list(values) for values in zip(*sorted(rows), strict=True)] or [[]] * len(SCHEMA)
    ranked = pa.table(columns, schema=SCHEMA)
    check_links(directory, [f"{FOLDER}/-"], files=False)
    return write_named(directory / FOLDER / f"{number:05d}", ranked, directory=directory)


def check_removals(directory: AnyPath, manifest: Manifest) -> Iterator[str]:
    """Yield the problems with the content of removals whose files are whole."""
    for removal in manifest.removals:
        alone = replace(manifest, removals=(removal,))
        try:
            rows_by_path = removed_rows(directory, alone)
        except DamageError as error:
            yield str(error)
            continue
        num_rows = sum(len(rows) for rows in rows_by_path.values())
        if num_rows != removal.documents.rows:
            yield (
                f"{directory / removal.documents.path} removes "
                f"{quantity(num_rows, 'document')}, the "
                f"manifest says {removal.documents.rows:,}"
            )


def _read(path: AnyPath, entry: TableEntry) -> dict[tuple[str, str, str, int], Rows]:
    """Return the rows of a removal by the keys of their shards."""
    table = check_values(read_table(read_verified(path, entry), path), path)
    with reraise_as_damage(path, kind="a removal"):
        table = table.select(SCHEMA.names).cast(SCHEMA)
    keys = SCHEMA.names[:-1]
    grouped = table.group_by(keys, use_threads=False).aggregate([("row", "list")])
    return {
        tuple(group[key] for key in keys): np.array(group["row_list"], np.int64)
        for group in grouped.to_pylist()
    }
