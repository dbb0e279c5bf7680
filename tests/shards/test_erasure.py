import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shards.__main__ import main
from shards.manifest import TRAIN, VALIDATION, read_manifest
from shards.reader import Dataset
from shards.storage.files import files, read_json, write_json
from shards.storage.remote import RemotePath
from shards.verify import verify
from tests.shards.generations import documents_of, grow, rows_of, signatures_of


@pytest.fixture(scope="module")
def removed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three generations, of which two have removed documents; no test changes them."""
    directory = tmp_path_factory.mktemp("removed") / "dataset"
    for shards in (2, 1, 2):
        grow(directory, shards=shards)
    first, _, third = (generation.name for generation in read_manifest(directory).generations)
    names = [f"{first}/wiki/00000:0", f"{first}/news/validation-00000:1", f"{third}/news/00001:2"]
    flags = [flag for name in names for flag in ("--id", name)]
    assert main(["remove", str(directory), *flags, "--reason", "letter"]) == 0
    write_json(directory / "report.json", {"examples": {"news": {"": ["text"]}}, "seconds": 7})
    (directory / "report.html").write_text("text")
    return directory


@pytest.fixture
def dataset(removed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(removed, tmp_path / "dataset"))


def erased_orders(directory: Path) -> set[int]:
    opened = Dataset.open(directory)
    return {
        opened.table(entry)["order"][row].as_py()
        for split in (TRAIN, VALIDATION)
        for entry in opened.manifest.shards(split=split)
        for row in opened.removed.get(entry.path, ())
    }


def content(directory: Path) -> dict[str, bytes]:
    names = [name for name in files(directory) if name not in (".lock")]
    return {name: (directory / name).read_bytes() for name in names}


def test_what_is_erased_is_left_out_of_everything(removed: Path, dataset: Path) -> None:
    orders = erased_orders(removed)
    assert len(orders) == 3
    assert main(["compact", str(dataset), "--erase"]) == 0
    manifest = read_manifest(dataset)
    assert (manifest.number, len(manifest.generations), manifest.removals) == (5, 1, ())
    assert list(verify(Dataset.open(dataset))) == []
    before = documents_of(removed)
    assert documents_of(dataset) == Counter(
        {document: count for document, count in before.items() if document[5] not in orders}
    )
    for folder in ("audit", "rejects"):
        rows = [row for row in rows_of(removed, folder) if row[1] not in orders]
        assert rows_of(dataset, folder) == rows
    assert len(rows_of(dataset, "rejects")) == 2  # one is of the record of an erased document
    assert signatures_of(dataset) == sorted(
        [
            (*row[:-1], 0) if row[0] == "exact" and row[-1] in orders else row
            for row in signatures_of(removed)
            if row[0] == "exact" or orders.isdisjoint(row)
        ],
        key=repr,
    )
    (generation,) = manifest.generations
    assert [path.name for path in dataset.glob("g*")] == [generation.name]
    assert list((dataset / "removals").iterdir()) == []


def test_the_report_loses_its_texts(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compact", str(dataset), "--erase"]) == 0
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
    assert content(dataset) == content(whole)


@pytest.fixture
def url(removed: Path) -> Iterator[RemotePath]:
    place = RemotePath(f"memory://{uuid.uuid4().hex}")
    for name, data in content(removed).items():
        (place / name).write(data)
    yield place
    place.remove([*place.files()])


def test_at_a_url(url: RemotePath, dataset: Path) -> None:
    name = read_manifest(dataset).generations[1].name
    flags = ["--id", f"{name}/news/00000:1", "--reason", "another"]
    for place in (str(url), str(dataset)):
        assert main(["remove", place, *flags]) == 0
    assert list(verify(Dataset.open(url))) == []
    assert Dataset.open(url).manifest == Dataset.open(dataset).manifest
    for place in (str(url), str(dataset)):
        assert main(["compact", place, "--erase"]) == 0
    local = content(dataset)
    assert {name: (url / name).read() for name in url.files() if name[:5] != ".lock"} == local


def test_all_of_a_source(dataset: Path, tmp_path: Path) -> None:
    names = [
        f"{entry.path}:{row}"
        for split in (TRAIN, VALIDATION)
        for entry in read_manifest(dataset).shards("wiki", split=split)
        for row in range(entry.documents)
    ]
    (tmp_path / "names").write_text("\n".join(names))
    flags = ["--documents", str(tmp_path / "names"), "--reason", "all"]
    assert main(["remove", str(dataset), *flags]) == 0
    assert main(["compact", str(dataset), "--erase"]) == 0
    assert list(verify(Dataset.open(dataset))) == []
    assert {document[0] for document in documents_of(dataset)} == {"news"}
    account = read_manifest(dataset).generations[0].accounting["wiki"]
    assert (account["kept"], account["erased"]) == (0, len(names))
