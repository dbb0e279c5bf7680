import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shards.__main__ import main
from shards.manifest import TRAIN, VALIDATION, read_manifest
from shards.reader import Dataset
from shards.storage.files import read_json, write_json
from shards.storage.remote import RemotePath
from shards.verify import verify
from tests.shards.datasets import take_down, tree
from tests.shards.generations import documents_of, grow


@pytest.fixture(scope="module")
def removed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three generations, of which two have removed documents; no test changes them."""
    directory = tmp_path_factory.mktemp("removed") / "dataset"
    for shards in (2, 1, 2):
        grow(directory, shards=shards)
    first, _, third = (generation.name for generation in read_manifest(directory).generations)
    names = [f"{first}/wiki/00000:0", f"{first}/news/validation-00000:1", f"{third}/news/00001:2"]
    take_down(directory, *names)
    write_json(directory / "report.json", {"examples": {"news": {"": ["text"]}}, "seconds": 7})
    (directory / "report.html").write_text("text")
    return directory


@pytest.fixture
def dataset(removed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(removed, tmp_path / "dataset"))


def test_the_report_and_the_rejects_lose_their_texts(
    dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compact", str(dataset), "--erase"]) == 0
    (generation,) = read_manifest(dataset).generations
    rows = sum(table.rows for table in generation.rejects)
    assert rows == 2, "of three one is of the record of an erased document"
    report = read_json(dataset / "report.json")
    assert report == {"accounting": {}, "examples": {}, "groups": {}, "seconds": 7}
    assert not (dataset / "report.html").exists()
    out = capsys.readouterr().out
    assert "report.json: without examples\nreport.html: deleted\n" in out


def killed_before(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, nth: int) -> None:
    """Have a function stop the process when it is called for the nth time."""
    original: Callable[..., Any] = getattr(owner, name)
    calls = iter(range(1, 1_000_000))

    def call(*values: Any, **named: Any) -> Any:
        if next(calls) == nth:
            raise KeyboardInterrupt
        return original(*values, **named)

    monkeypatch.setattr(owner, name, call)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "name", "nth"),
    [(Path, "replace", 1), (Path, "replace", 9), (Path, "replace", 30), (Path, "unlink", 1)]
    + [(shutil, "rmtree", nth) for nth in (1, 2, 3)],
    ids=str,
)
def test_killed_anywhere_the_same_command_finishes(
    removed: Path, dataset: Path, tmp_path: Path, owner: Any, name: str, nth: int
) -> None:
    whole = Path(shutil.copytree(removed, tmp_path / "whole"))
    assert main(["compact", str(whole), "--erase"]) == 0
    with pytest.MonkeyPatch.context() as patched:
        killed_before(patched, owner, name, nth)
        assert main(["compact", str(dataset), "--erase"]) == 130
    assert list(verify(Dataset.open(dataset))) == []
    assert main(["compact", str(dataset), "--erase"]) == 0
    assert tree(dataset) == tree(whole)


def test_at_a_url(remote: RemotePath, dataset: Path) -> None:
    for name, data in tree(dataset).items():
        (remote / name).write(data)
    name = read_manifest(dataset).generations[1].name
    places = (str(remote), str(dataset))
    for place in places:
        take_down(place, f"{name}/news/00000:1")
    assert list(verify(Dataset.open(remote))) == []
    assert Dataset.open(remote).manifest == Dataset.open(dataset).manifest
    for place in places:
        assert main(["compact", place, "--erase"]) == 0
    names = [name for name in remote.files() if name[:5] != ".lock"]
    assert {name: (remote / name).read() for name in names} == tree(dataset)


def test_all_of_a_source(dataset: Path) -> None:
    names = [
        f"{entry.path}:{row}"
        for split in (TRAIN, VALIDATION)
        for entry in read_manifest(dataset).shards("wiki", split=split)
        for row in range(entry.documents)
    ]
    take_down(dataset, *names)
    assert main(["compact", str(dataset), "--erase"]) == 0
    assert list(verify(Dataset.open(dataset))) == []
    assert {document[0] for document in documents_of(dataset)} == {"news"}
    account = read_manifest(dataset).generations[0].accounting["wiki"]
    assert (account["kept"], account["erased"]) == (0, len(names))
