import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from shards.__main__ import main
from shards.errors import DamageError, UserError
from shards.manifest import (
    VALIDATION,
    Manifest,
    Removal,
    TableEntry,
    parse_dataset,
    read_manifest,
    sum_shards,
    told_apart,
    write_manifest,
)
from shards.storage.files import canonical, write_json
from tests.shards.conftest import GENERATION


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


def test_round_trip(pristine: Path, tmp_path: Path) -> None:
    manifest = grown(read_manifest(pristine))
    write_manifest(tmp_path, manifest)
    assert read_manifest(tmp_path) == manifest
    content = (tmp_path / "manifest.json").read_bytes()
    value = json.loads(content)
    assert (value["format"], value["version"]) == ("corpusmill-dataset", 1)
    assert content == canonical(value)


def test_at_a_number(pristine: Path) -> None:
    first = read_manifest(pristine)
    manifest = grown(first)
    assert manifest.as_of(1) == first
    assert [part.number for part in manifest.as_of(2).generations] == [1, 2]
    assert manifest.as_of(2).removals == ()
    assert manifest.as_of(3) == manifest


@pytest.mark.parametrize("number", [0, 1, 4])
def test_at_a_number_that_is_not_there(pristine: Path, number: int) -> None:
    manifest = grown(read_manifest(pristine))
    overwritten = replace(manifest, generations=manifest.generations[1:])
    with pytest.raises(UserError, match=rf"no manifest number {number}: .* numbers 2 to 3"):
        overwritten.as_of(number)


def test_identity_is_of_the_data(pristine: Path) -> None:
    manifest = read_manifest(pristine)
    (generation,) = manifest.generations
    again = replace(manifest, number=5, lineage="f", generations=(replace(generation, number=5),))
    assert again.identity == manifest.identity
    other = replace(manifest, options={**manifest.options, "seed": 2})
    assert other.identity != manifest.identity
    assert grown(manifest).identity != manifest.identity


def test_sources_shards_and_totals(pristine: Path) -> None:
    manifest = read_manifest(pristine)
    assert manifest.sources() == ("pile", "wudao")
    assert [entry.path[15:] for entry in manifest.shards()] == [
        "pile/00000",
        *(f"wudao/0000{i}" for i in range(4)),
    ]
    assert [entry.path[15:] for entry in manifest.shards(split=VALIDATION)] == [
        "wudao/validation-00000"
    ]
    sums = sum_shards(manifest.shards("wudao"))
    assert (sums.shards, sums.documents) == (4, 6)
    assert sums.tokens == sum(entry.tokens for entry in manifest.shards("wudao")) > 0
    files = [pristine / f"{e.path}.{s}" for e in manifest.shards("wudao") for s in e.files]
    assert sums.bytes == sum(file.stat().st_size for file in files)


def test_files_are_all_there_is(pristine: Path) -> None:
    named = {path: entry.bytes for path, entry in read_manifest(pristine).files()}
    present = {
        path.relative_to(pristine).as_posix(): path.stat().st_size
        for path in pristine.rglob("*")
        if path.is_file() and path.name not in ("manifest.json")
    }
    assert named == present


def test_parse_dataset(tmp_path: Path) -> None:
    assert parse_dataset("a/b") == (Path("a/b"), None)
    assert parse_dataset("a/b@12") == (Path("a/b"), 12)
    assert parse_dataset("user@host/b") == (Path("user@host/b"), None)
    (tmp_path / "x@3").mkdir()
    assert parse_dataset(tmp_path / "x@3") == (tmp_path / "x@3", None)
    assert parse_dataset(f"{tmp_path}/x@3@1") == (tmp_path / "x@3", 1)


@pytest.mark.parametrize("path", ["../esc", "/etc/hostname", "a/../../b", "s3://bucket/x"])
def test_no_path_of_a_manifest_leads_out(dataset: Path, tmp_path: Path, path: str) -> None:
    manifest = json.loads((dataset / "manifest.json").read_bytes())
    manifest["vocabulary"]["path"] = path
    del manifest["sha256"]
    sha256 = hashlib.sha256(canonical(manifest)).hexdigest()
    write_json(dataset / "manifest.json", {**manifest, "sha256": sha256})
    assert main(["place", str(dataset), "--to", str(tmp_path / "in" / "disk")]) == 2
    assert not (tmp_path / "in").exists()


def test_no_link_of_a_dataset_leads_out(dataset: Path, tmp_path: Path) -> None:
    outside = (dataset / GENERATION).rename(tmp_path / "outside")
    (dataset / GENERATION).symlink_to(outside)
    with pytest.raises(
        DamageError, match=rf"{GENERATION}/\w+ leads by a link to .*outside.*, not in"
    ):
        read_manifest(dataset)
    (dataset / GENERATION).unlink()
    (dataset / "moved").mkdir()
    (dataset / GENERATION).symlink_to(outside.rename(dataset / "moved" / GENERATION))
    assert read_manifest(dataset).number == 1, "it stays in the dataset"
    (dataset / "vocabulary").symlink_to(tmp_path)
    shard = dataset / GENERATION / "pile" / "00000.bin"
    shard.symlink_to(shard.rename(tmp_path / "00000.bin"))
    with pytest.raises(DamageError, match=r"pile/00000\.bin leads by a link to "):
        read_manifest(dataset)


@pytest.fixture
def linked(dataset: Path, tmp_path: Path) -> Path:
    """A dataset of links, as in a cache."""
    for number, path in enumerate(sorted(dataset.rglob("*"))):
        if path.is_file():
            path.symlink_to(path.rename(tmp_path / f"blob-{number}"))
    return dataset


def test_a_cache_of_links_is_a_dataset(linked: Path, tmp_path: Path) -> None:
    assert read_manifest(linked).number == 1
    assert main(["verify", str(linked)]) == 0
    assert main(["place", str(linked), "--check"]) == 0
    assert main(["place", str(linked), "--to", str(tmp_path / "copy")]) == 0
    assert main(["place", str(linked), "--check", "--to", str(tmp_path / "copy")]) == 0


def test_a_number_that_no_manifest_has() -> None:
    number = "9" * 5000
    assert parse_dataset(f"out@{number}") == (Path(f"out@{number}"), None)


def test_models_are_told_apart_by_name_or_else_by_hash() -> None:
    assert told_apart(("a", "0" * 64), ("b", "1" * 64)) == ("a", "b")
    one, other = told_apart(("a", "0" * 64), ("a", "1" * 64))
    assert one == "a (a file of SHA-256 00000000…)"
    assert other == "a (a file of SHA-256 11111111…)"
