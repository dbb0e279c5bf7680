"""Guarantee: Damage is found: sizes when a shard is opened, checksums by `verify`."""

import shutil
from pathlib import Path

from shards.manifest import read_manifest
from shards.reader import Dataset
from shards.verify import verify


def problems(directory: Path) -> list[str]:
    return list(verify(Dataset.open(directory)))


def test_every_file_is_read(pristine: Path, tmp_path: Path) -> None:
    """One bit in any file is found and named, and nothing else is."""
    named = [path for path, entry in read_manifest(pristine).files() if entry.bytes]
    assert len(named) == 19
    for name in named:
        directory = Path(shutil.copytree(pristine, tmp_path / name.replace("/", "-")))
        content = bytearray((directory / name).read_bytes())
        content[len(content) // 2] ^= 1
        (directory / name).write_bytes(content)
        (problem,) = problems(directory)
        assert problem.startswith(f"{directory / name} has crc32c ")
