import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

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


def signed(directory: Path, value: dict[str, Any]) -> None:
    """Write a manifest as somebody would who knows how they are signed."""
    value.pop("sha256", None)
    write_json(
        directory / "manifest.json",
        {**value, "sha256": hashlib.sha256(canonical(value)).hexdigest()},
    )


def crafted(directory: Path, *place: str | int, value: Any) -> None:
    """Put a value into a dataset's manifest, which stays signed."""
    manifest = json.loads((directory / "manifest.json").read_bytes())
    holder = manifest
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    signed(directory, manifest)


SHARD = ("generations", 0, "sources", "wudao", "shards", 0)
ESCAPES = ["../esc", "/etc/hostname", "a/../../b", "a//b", ".", "", "a\0b", "s3://bucket/x"]


@pytest.mark.parametrize("path", ESCAPES)
@pytest.mark.parametrize(
    "place",
    [
        ("vocabulary", "path"),
        (*SHARD, "path"),
        ("generations", 0, "sources", "wudao", "validation", 0, "path"),
        ("generations", 0, "audit", 0, "path"),
        ("generations", 0, "name"),
    ],
    ids=lambda place: place[-2] if isinstance(place[-2], str) else place[-3],
)
def test_no_path_of_a_manifest_leads_out(
    dataset: Path, tmp_path: Path, place: tuple[str | int, ...], path: str
) -> None:
    crafted(dataset, *place, value=path)
    with pytest.raises(DamageError, match=r"manifest\.json: .* is no path below a folder"):
        read_manifest(dataset)
    assert main(["place", str(dataset), "--to", str(tmp_path / "in" / "disk")]) == 2
    assert not (tmp_path / "in").exists()


@pytest.mark.parametrize("name", ["..", "a/b", "/x"])
def test_no_name_of_a_source_leads_out(dataset: Path, name: str) -> None:
    sources = json.loads((dataset / "manifest.json").read_bytes())["generations"][0]["sources"]
    crafted(dataset, "generations", 0, "sources", value={name: sources["pile"]})
    with pytest.raises(DamageError, match=r"manifest\.json: .* is no (path|name)"):
        read_manifest(dataset)


def test_no_link_of_a_dataset_leads_out(dataset: Path, tmp_path: Path) -> None:
    outside = (dataset / GENERATION).rename(tmp_path / "outside")
    (dataset / GENERATION).symlink_to(outside)
    with pytest.raises(DamageError, match=rf"{GENERATION} is a link to .*outside, which is not in"):
        read_manifest(dataset)
    (dataset / GENERATION).unlink()
    (dataset / "moved").mkdir()
    (dataset / GENERATION).symlink_to(outside.rename(dataset / "moved" / GENERATION))
    assert read_manifest(dataset).number == 1, "it stays in the dataset"
    (dataset / "vocabulary").symlink_to(tmp_path)
    shard = dataset / GENERATION / "pile" / "00000.bin"
    shard.symlink_to(shard.rename(tmp_path / "00000.bin"))
    with pytest.raises(DamageError, match=r"pile/00000\.bin is a link to "):
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


@pytest.mark.parametrize(
    "command",
    [
        ["remove", "--documents", "list", "--reason", "asked"],
        ["compact"],
        ["compact", "--erase"],
    ],
)
def test_a_cache_of_links_is_not_written(
    linked: Path,
    command: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(linked.parent)
    (linked.parent / "list").write_text(f"{GENERATION}/pile/00000:0\n")
    before = sorted(linked.rglob("*"))
    name, *options = command
    assert main([name, str(linked), *options]) == 2
    assert "manifest.json is a link: this dataset consists of links" in capsys.readouterr().err
    assert sorted(linked.rglob("*")) == before
    assert (linked / "manifest.json").is_symlink()
    assert main(["verify", str(linked)]) == 0


@pytest.mark.parametrize(
    ("place", "value", "why"),
    [
        (("tokenizer", "dtype"), "float64", r"'float64': tokens are uint16 or int32"),
        (("tokenizer", "vocabulary_size"), 10**9, "pieces and 1000000000 ids of type 'uint16'"),
        (("tokenizer", "pieces"), -1, "has -1 pieces"),
        (("tokenizer", "special"), {}, "has no eos"),
        (("tokenizer", "special", "mask"), 10**9, r"special\.mask is 1000000000, no id"),
        (("generations",), [], r"manifest\.generations is empty"),
        (("generations", 0, "number"), 0, "a number is 0"),
        (("number",), 0, "a number is 1, manifest.number 0"),
        (("number",), 10**400, "number is a number of 1,329 bits"),
        ((*SHARD, "documents"), -1, "documents is -1, which no dataset has"),
        ((*SHARD, "tokens"), 2**63, "tokens is 9223372036854775808, which no dataset has"),
        ((*SHARD, "files", "bin", "bytes"), -5, "bytes is -5"),
        ((*SHARD, "files"), {}, r"has the files \[\], not"),
        ((*SHARD, "files", "../x"), {"bytes": 1, "crc32c": 1}, "has the files "),
        (("generations", 0, "audit", 0, "rows"), "9", "is '9', not of type int"),
        (("generations", 0, "accounting", "wudao"), 7, r"accounting\.wudao is 7, no account"),
        (("generations", 0, "accounting", "wudao", "read"), "x", "read is 'x', not of type int"),
        (("generations", 0, "accounting", "wudao", "new"), [1], r"new is \[1\], no number"),
        (("options", "shards"), 10**9, r"options\.shards is 1000000000, none that a run has"),
        (("options", "shard_tokens"), [1], r"options\.shard_tokens is \[1\], none"),
        (("corpus",), ["x" * 10_000], r"is \['x+…, not of type str"),
    ],
)
def test_a_crafted_manifest_is_told_in_a_paragraph(
    dataset: Path, place: tuple[str | int, ...], value: Any, why: str
) -> None:
    crafted(dataset, *place, value=value)
    with pytest.raises(DamageError, match=rf"manifest\.json: .*{why}") as raised:
        read_manifest(dataset)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 600


def test_a_number_that_no_manifest_has() -> None:
    number = "9" * 5000
    assert parse_dataset(f"out@{number}") == (Path(f"out@{number}"), None)


def test_models_are_told_apart_by_name_or_else_by_hash() -> None:
    assert told_apart(("a", "0" * 64), ("b", "1" * 64)) == ("a", "b")
    one, other = told_apart(("a", "0" * 64), ("a", "1" * 64))
    assert one == "a (a file of SHA-256 00000000…)"
    assert other == "a (a file of SHA-256 11111111…)"
