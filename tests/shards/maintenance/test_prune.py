import os
import time
from pathlib import Path

import pytest

from shards.__main__ import main
from shards.maintenance.prune import leftovers, remove_unfinished, remove_work
from shards.manifest import read_manifest
from shards.storage.files import list_files
from shards.storage.remote import RemotePath
from tests.shards.conftest import GENERATION

UNFINISHED = f".tmp-{'3' * 32}-manifest.json"


def put(directory: Path, *names: str) -> None:
    for name in names:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(1000))


def left_over(directory: Path) -> dict[str, int]:
    pruned = leftovers(directory, read_manifest(directory))
    return {leftover.path.relative_to(directory).as_posix(): leftover.bytes for leftover in pruned}


def test_what_the_manifest_does_not_name_goes(
    dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = sorted(dataset.rglob("*"))
    put(dataset, "g0000-00000000/wudao/00000.bin", "g0000-00000000/wudao/00000.idx")
    put(dataset, f"{GENERATION}/wudao/00009.bin", "vocabulary-00000000.arrow", UNFINISHED)
    put(dataset, "removals/00001-00000000.arrow", ".work/map/a.json")
    assert left_over(dataset) == {
        UNFINISHED: 1000,
        ".work": 1000,
        "g0000-00000000": 2000,
        f"{GENERATION}/wudao/00009.bin": 1000,
        "removals/00001-00000000.arrow": 1000,
        "vocabulary-00000000.arrow": 1000,
    }
    assert main(["prune", str(dataset), "--days", "0"]) == 0
    assert "           7,000  bytes freed\n" in capsys.readouterr().out
    assert sorted(path for path in dataset.rglob("*") if path.name != ".lock") == sorted(
        [*whole, dataset / "removals"]
    )


def test_other_names_at_the_top_and_links_stay(dataset: Path, tmp_path: Path) -> None:
    put(dataset, "report.json", "notes.txt", "mine/g0000-00000000/x", "g1", "vocabulary.arrow")
    put(dataset, ".tmp-34-x")
    put(tmp_path, "elsewhere/map/a.json", f"elsewhere/{UNFINISHED}")
    for name in (".work", "g0000-00000000", "removals"):
        (dataset / name).symlink_to(tmp_path / "elsewhere")
    assert left_over(dataset) == {}
    remove_unfinished(dataset)
    remove_work(dataset / ".work")
    remove_work(dataset / ".work", "map")
    assert sorted(list_files(tmp_path / "elsewhere")) == ["map/a.json"]
    assert (tmp_path / "elsewhere" / UNFINISHED).exists()


def test_unfinished_files_go_alone(dataset: Path) -> None:
    names = [UNFINISHED, f"{GENERATION}/wudao/{UNFINISHED}", f".work/map/{UNFINISHED}"]
    put(dataset, *names, f"mine/{UNFINISHED}", ".work/map/a.json")
    before = sorted(list_files(dataset))
    remove_unfinished(dataset)
    assert sorted(list_files(dataset)) == before
    assert not any((dataset / name).exists() for name in names)
    assert (dataset / "mine" / UNFINISHED).exists()


def test_work_behind_a_url(remote: RemotePath) -> None:
    work = remote / ".work"
    for name in ("map/a.json", "dedup/b.json"):
        (work / name).write(b"x")
    remove_work(work, "dedup")
    assert sorted(list_files(work)) == ["map/a.json"]
    remove_work(work)
    assert sorted(list_files(work)) == []


def test_what_a_manifest_named_lately_is_left(grown: Path) -> None:
    folders = [grown / each.name for each in read_manifest(grown).generations]
    for folder in folders:
        os.utime(folder, (0, 0))  # the files were made long ago, but are replaced now
    assert main(["compact", str(grown)]) == 0
    assert main(["prune", str(grown)]) == 0
    assert all(folder.exists() for folder in folders)
    old = time.time() - 30 * 86_400
    os.utime(folders[0], (old, old))
    assert main(["prune", str(grown)]) == 0
    assert [folder.exists() for folder in folders] == [False, True]
