"""A mapped file, and the records that its splits left."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipelines.inputs.files import InputFile, match_inputs
from pipelines.inputs.split import Split, split_file
from pipelines.map.mapper import SplitRecord
from pipelines.readers.reading import Reading
from pipelines.segments.segment import Segment
from shards.records import sealed
from shards.storage.files import FileEntry, crc32c_of, write_json

CONTENT = bytes(range(256)) * 100


SPLIT_BYTES = 10_000


LEFT = {"tokens": b"1234", "documents": b"", "rejects": b"a rejected record"}


FILES = {name: FileEntry(bytes=len(raw), crc32c=crc32c_of(raw)) for name, raw in LEFT.items()}


READING = Reading(format="json", text_fields=("text",))


def matched(file: Path) -> InputFile:
    (found,) = match_inputs([str(file)], pattern="*", default_name="s")
    return found


def splits(file: Path) -> list[Split]:
    return split_file(matched(file), SPLIT_BYTES)


def record(split: Split, *, stems: Sequence[str] = (), **changes: Any) -> SplitRecord:
    fields: dict[str, Any] = {
        "crc32c": crc32c_of(CONTENT[split.start : split.end]),
        "mtime_ns": split.mtime_ns,
        "etag": split.etag,
        "versions": {"ftfy": "6.3"},
        "segments": tuple(
            Segment(
                stem=stem,
                documents=1,
                tokens=1,
                longest=1,
                rejects=0,
                fanned_out=0,
                tallies=(),
                files=FILES,
            )
            for stem in stems
        ),
        **changes,
    }
    return SplitRecord(
        source=split.source,
        relative=split.relative,
        start=split.start,
        end=split.end,
        file_bytes=split.file_bytes,
        first=0,
        next=1,
        unsampled=0,
        seconds=0.0,
        cpu_seconds={},
        **fields,
    )


def leave(folder: Path, name: str, left: SplitRecord) -> None:
    write_json(folder / f"{name}.json", sealed(left))
    for segment in left.segments:
        for suffix, content in LEFT.items():
            (folder / f"{segment.stem}.{suffix}").write_bytes(content)


def touch(path: Path) -> None:
    """Give a file another time."""
    before = path.stat().st_mtime_ns
    os.utime(path, ns=(before + 10**9, before + 10**9))
