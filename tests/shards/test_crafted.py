"""Whatever stands in a manifest, every command answers with a result or with one paragraph."""

import hashlib
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from shards.__main__ import main
from shards.errors import UserError
from shards.manifest import read_manifest
from shards.storage.files import canonical, read_json
from tests.shards import generations
from tests.shards.datasets import take_down
from tests.shards.json_mutations import mutated, put

FIRST_SEED = 15_000


@pytest.fixture(scope="module")
def pristine_growth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of two generations with all their tables, and a removal."""
    directory = tmp_path_factory.mktemp("crafted") / "dataset"
    directory.mkdir()
    for _ in range(2):
        manifest = generations.grow(directory)
    take_down(directory, f"{manifest.shards()[0].path}:0")
    return directory


@pytest.fixture
def growth(pristine_growth: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine_growth, tmp_path / "dataset"))


def put_mutated(directory: Path, whole: dict[str, Any], seed: int) -> None:
    """Put a mutation of a manifest into its place, signed if it can be."""
    value = mutated(whole, seed)
    if isinstance(value, dict):
        value.pop("sha256", None)
        try:
            value["sha256"] = hashlib.sha256(canonical(value)).hexdigest()
        except ValueError:
            value["sha256"] = whole["sha256"]
    put(directory / "manifest.json", value)


def commands(directory: Path, beside: Path) -> list[list[str]]:
    dataset, data = str(directory), ["--data", str(directory)]
    shape = ["--objective", "causal", "--length", "16", "--batch", "4", "--steps", "5"]
    return [
        ["inspect", dataset],
        ["inspect", dataset, "--doc", "0"],
        ["inspect", f"{dataset}@1"],
        ["stats", dataset],
        ["verify", dataset],
        ["place", dataset, "--list", "--scatters", "2"],
        ["place", dataset, "--to", str(beside / "in" / "disk")],
        ["prune", dataset, "--dry-run"],
        ["remove", dataset, "--id", "x", "--dry-run"],
        ["trace", *data, *shape, "--step", "0"],
        ["compact", dataset],
        ["compact", dataset, "--erase"],
    ]


@pytest.mark.parametrize(
    "seeds",
    [range(FIRST_SEED, FIRST_SEED + 50), pytest.param(range(3000), marks=pytest.mark.nightly)],
    ids=["some", "thousands"],
)
def test_commands(
    growth: Path, pristine_growth: Path, capsys: pytest.CaptureFixture[str], seeds: range
) -> None:
    whole, beside = read_json(growth / "manifest.json"), growth.parent
    codes = set()
    for seed in seeds:
        put_mutated(growth, whole, seed)
        command = random.Random(seed).choice(commands(growth, beside))
        code = main(command)
        told = capsys.readouterr().err
        assert (told.count("\n"), len(told) < 1000) == (code == 2, True), f"seed {seed}: {told}"
        codes.add(code)
        shutil.rmtree(beside / "in", ignore_errors=True)
        assert {path.name for path in beside.iterdir()} == {growth.name}, f"seed {seed}"
        if command[0] == "compact":
            shutil.rmtree(growth)
            shutil.copytree(pristine_growth, growth)
    assert {0, 2} <= codes


def test_reading(growth: Path) -> None:
    """What is taken is as sound as the checks at load promise."""
    whole = read_json(growth / "manifest.json")
    taken = 0
    for seed in range(FIRST_SEED, FIRST_SEED + 120):
        put_mutated(growth, whole, seed)
        try:
            manifest = read_manifest(growth)
        except UserError:
            continue
        taken += 1
        assert manifest.as_of(manifest.number) == manifest, f"seed {seed}"
        assert all((growth / path).is_relative_to(growth) for path, _ in manifest.files())
        assert all(".." not in Path(path).parts for path, _ in manifest.files()), f"seed {seed}"
        assert manifest.tokenizer.token_dtype.itemsize in (2, 4), f"seed {seed}"
    assert 0 < taken < 120
