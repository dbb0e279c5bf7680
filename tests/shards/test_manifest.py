import json
from dataclasses import replace
from pathlib import Path

import pytest

from shards.errors import DamageError, UserError
from shards.manifest import (
    VALIDATION,
    Manifest,
    Removal,
    TableEntry,
    parse_dataset,
    read_manifest,
    sum_shards,
    write_manifest,
)
from shards.storage.files import canonical, write_json


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
        if path.is_file() and path.name not in ("manifest.json", ".readers")
    }
    assert named == present


def test_a_changed_manifest(dataset: Path) -> None:
    path = dataset / "manifest.json"
    path.write_text(path.read_text().replace('"seed": 1', '"seed": 2'))
    with pytest.raises(DamageError, match=r"manifest\.json was changed .*sha256"):
        read_manifest(dataset)


def test_a_cut_manifest(dataset: Path) -> None:
    path = dataset / "manifest.json"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DamageError, match=r"manifest\.json holds no valid JSON"):
        read_manifest(dataset)


def test_another_file_of_that_name(tmp_path: Path) -> None:
    values: list[object] = [{"name": "a web app"}, []]
    for value in values:
        write_json(tmp_path / "manifest.json", value)
        with pytest.raises(DamageError, match="is not a dataset's manifest"):
            read_manifest(tmp_path)


def test_a_newer_manifest(dataset: Path) -> None:
    value = json.loads((dataset / "manifest.json").read_bytes())
    write_json(dataset / "manifest.json", {**value, "version": 2})
    with pytest.raises(UserError, match=r"newer corpusmill \(manifest version 2;.*upgrade"):
        read_manifest(dataset)


def test_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere does not exist: give a dataset's folder"):
        read_manifest(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"holds no dataset: it has no manifest\.json"):
        read_manifest(tmp_path)
    (tmp_path / ".work").mkdir()
    with pytest.raises(UserError, match=r"unfinished\. Run the same command again"):
        read_manifest(tmp_path)


def test_parse_dataset(tmp_path: Path) -> None:
    assert parse_dataset("a/b") == (Path("a/b"), None)
    assert parse_dataset("a/b@12") == (Path("a/b"), 12)
    assert parse_dataset("user@host/b") == (Path("user@host/b"), None)
    (tmp_path / "x@3").mkdir()
    assert parse_dataset(tmp_path / "x@3") == (tmp_path / "x@3", None)
    assert parse_dataset(f"{tmp_path}/x@3@1") == (tmp_path / "x@3", 1)
