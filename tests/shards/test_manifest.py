from dataclasses import replace
from pathlib import Path

from shards.manifest import (
    Manifest,
    Removal,
    TableEntry,
    parse_dataset,
    read_manifest,
)


def grown(manifest: Manifest) -> Manifest:
    """Return the manifest with a generation in number 2 and a removal in number 3."""
    second = replace(manifest.generations[0], number=2, name="g0002-00c0ffee")
    table = TableEntry(path="removals/0003.arrow", bytes=1, crc32c=2, rows=1)
    return replace(
        manifest,
        number=3,
        generations=(*manifest.generations, second),
        removals=(Removal(number=3, reason="asked", documents=table),),
    )


def test_identity_is_of_the_data(pristine: Path) -> None:
    manifest = read_manifest(pristine)
    (generation,) = manifest.generations
    again = replace(manifest, number=5, lineage="f", generations=(replace(generation, number=5),))
    assert again.identity == manifest.identity
    other = replace(manifest, options={**manifest.options, "seed": 2})
    assert other.identity != manifest.identity
    assert grown(manifest).identity != manifest.identity


def test_parse_dataset(tmp_path: Path) -> None:
    assert parse_dataset("a/b") == (Path("a/b"), None)
    assert parse_dataset("a/b@12") == (Path("a/b"), 12)
    assert parse_dataset("user@host/b") == (Path("user@host/b"), None)
    (tmp_path / "x@3").mkdir()
    assert parse_dataset(tmp_path / "x@3") == (tmp_path / "x@3", None)
    assert parse_dataset(f"{tmp_path}/x@3@1") == (tmp_path / "x@3", 1)
