from pathlib import Path

import pytest

from shards.errors import UserError
from shards.manifest import read_manifest
from shards.prune import Leftover, delete, leftovers
from tests.shards.conftest import GENERATION


def put(directory: Path, *names: str) -> None:
    for name in names:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(1000))


def left_over(directory: Path) -> dict[str, int]:
    pruned = leftovers(directory, read_manifest(directory))
    return {leftover.path.relative_to(directory).as_posix(): leftover.bytes for leftover in pruned}


def test_what_the_manifest_does_not_name_is_left_over(dataset: Path) -> None:
    assert left_over(dataset) == {}
    put(dataset, "g0000-00000000/wudao/00000.bin", "g0000-00000000/wudao/00000.idx")
    put(dataset, f"{GENERATION}/wudao/00009.bin", "vocabulary-00000000.arrow")
    put(dataset, unfinished := f".tmp-{'3' * 32}-manifest.json")
    assert left_over(dataset) == {
        unfinished: 1000,
        "g0000-00000000": 2000,
        f"{GENERATION}/wudao/00009.bin": 1000,
        "vocabulary-00000000.arrow": 1000,
    }


def test_files_of_others_are_no_leftovers(dataset: Path) -> None:
    put(dataset, "report.json", "notes.txt", "mine/g0000-00000000/x", "g1", "vocabulary.arrow")
    put(dataset, ".tmp-34-x", f".tmp-{'3' * 32}-notes.txt", "removals/why.txt", ".work/thesis.txt")
    assert left_over(dataset) == {}


def test_what_others_put_into_a_leftover_folder_stays(dataset: Path) -> None:
    work, old = f".work/map/{'a' * 24}.json", "g0000-00000000/wudao/00000.bin"
    put(dataset, work, old, ".work/map/thesis.txt", "g0000-00000000/notes/why.txt")
    assert left_over(dataset) == {work: 1000, "g0000-00000000/wudao": 1000}
    names = {left.path.name: left.name for left in leftovers(dataset, read_manifest(dataset))}
    assert names == {f"{'a' * 24}.json": ".work", "wudao": "g0000-00000000"}, "a reader's hold"


def test_empty_folders_of_others_stay(dataset: Path) -> None:
    put(dataset, work := f".work/map/{'a' * 24}.json")
    for name in (".work/mine", ".work/map/mine", "removals/mine", ".work/dedup", "g0000-00000000"):
        (dataset / name).mkdir(parents=True)
    assert left_over(dataset) == {work: 1000, ".work/dedup": 0, "g0000-00000000": 0}


def test_links_are_made_by_others_and_stay(dataset: Path, tmp_path: Path) -> None:
    put(tmp_path, f"elsewhere/map/{'a' * 24}.json")
    (dataset / ".work").symlink_to(tmp_path / "elsewhere")
    (dataset / "g0000-00000000").symlink_to(tmp_path / "elsewhere")
    assert left_over(dataset) == {}


def test_delete(tmp_path: Path) -> None:
    put(tmp_path, "folder/below/x", "file")
    for name in ("folder", "file"):
        delete(Leftover(path=tmp_path / name, bytes=1000))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UserError, match=r"cannot delete: .*file"):
        delete(Leftover(path=tmp_path / "file", bytes=1000))
