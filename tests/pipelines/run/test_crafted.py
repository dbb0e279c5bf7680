"""Whatever stands in the files beside a manifest, it is told in one paragraph or does no harm."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.inputs.files import InputFile
from pipelines.run import commit, existing
from pipelines.run.ledger import NAME as LEDGER
from pipelines.run.ledger import Ledger
from shards.console import run_module
from shards.erasure import Erasure
from shards.errors import UserError
from shards.history import rewrite_history
from shards.manifest import read_manifest
from shards.reader import Dataset
from shards.storage.files import canonical, crc32c_of, read_json
from tests.shards.json_mutations import mutated, put

FIRST_SEED = 15_000
FILES = [
    InputFile(source=source, path=f"/in/{name}", relative=name, bytes=7, mtime_ns=8, etag="e")
    for source, name in [("wudao", "1"), ("a", "2")]
]


@pytest.fixture
def dataset(reference: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(reference, tmp_path / "out"))


def users(dataset: Path, name: str) -> list[Callable[[], object]]:
    """Return what reads a file that lies beside a manifest."""
    manifest = read_manifest(dataset)
    if name == existing.INPUTS:
        return [
            lambda: existing.seen_files(manifest, output=dataset),
            lambda: commit._inputs_before(dataset, []),
        ]
    if name == LEDGER:
        return [lambda: [entry.files for entry in [Ledger(dataset).open_entry(1)] if entry]]
    page = str(dataset / "page.html")
    return [
        *[lambda: run_module("pipelines.report", [str(dataset), "--output", page])] * 4,
        lambda: commit._generations_before(dataset, manifest),
        lambda: rewrite_history(dataset, manifest, manifest.generations),
        lambda: Erasure(Dataset.open(dataset)).clear_report(),
    ]


def sealed_again(value: Any) -> Any:
    if isinstance(value, dict) and "seal" in value:
        del value["seal"]
        try:
            value["seal"] = crc32c_of(canonical(value))
        except ValueError:
            value["seal"] = 0
    return value


def check(dataset: Path, name: str, seeds: range, capsys: pytest.CaptureFixture[str]) -> None:
    Ledger(dataset).name(2, FILES)
    whole, told = read_json(dataset / name), 0
    read = users(dataset, name)
    for seed in seeds:
        put(dataset / name, sealed_again(mutated(whole, seed)))
        try:
            code = random.Random(seed).choice(read)()
            error = capsys.readouterr().err if code == 2 else ""
        except UserError as raised:
            error = f"{raised}\n"
        assert error.count("\n") <= 1, f"seed {seed}: {error}"
        assert len(error) < 1000, f"seed {seed}"
        told += bool(error)
    assert told, "no mutation was noticed"


@pytest.mark.parametrize("name", [existing.INPUTS, "report.json", LEDGER])
def test_files_beside_a_manifest(
    dataset: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check(dataset, name, range(FIRST_SEED, FIRST_SEED + 30), capsys)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [existing.INPUTS, "report.json", LEDGER])
def test_files_beside_a_manifest_thousands_of_times(
    dataset: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check(dataset, name, range(1000), capsys)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({}, "it is no list"),
        ([7], "'int' object has no attribute"),
        ([{"source": "s", "path": "p"}], "file 0.mtime_ns is missing"),
        ([{"source": ["s"], "path": "p", "mtime_ns": 1}], "file 0.source is"),
        ([{"source": "s", "path": "p", "mtime_ns": 1, "from": 7}], "from is no path"),
    ],
)
def test_input_times_that_make_no_sense(tmp_path: Path, told: Any, why: str) -> None:
    put(tmp_path / existing.INPUTS, told)
    with pytest.raises(UserError, match=rf"inputs\.json .*{why}.* or delete it"):
        existing.read_inputs(tmp_path)
