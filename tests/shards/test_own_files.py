import uuid
from pathlib import Path

import pytest

from shards.own_files import is_ours, remove_unfinished, remove_work
from shards.storage.files import files
from shards.storage.remote import RemotePath

MARK, TASK = "0123456789abcdef" * 2, "0123456789abcdef01234567"


@pytest.mark.parametrize(
    "path",
    [
        "g0001-3f9c12ab/wudao/00000.bin",
        "g0001-3f9c12ab/wudao/validation-00000.arrow",
        "g12345-3f9c12ab/audit/a-b-00000.parquet",
        "g0001-3f9c12ab/signatures/band-07-00000.arrow",
        "removals/00003-0badcafe.arrow",
        "vocabulary-0badcafe.arrow",
        f".work/map/{TASK}-0000.tokens",
        f".work/watch/{TASK}.taken.json",
        ".work/watch/driver.json",
        f".work/compact/{TASK[:16]}/train/news-00000-4.json",
        f".work/progress/{MARK}.tmp",
    ],
)
def test_finished_and_unfinished_files_of_ours(path: str) -> None:
    folder, slash, name = path.rpartition("/")
    start = f"{folder}{slash}"
    assert is_ours(path)
    assert is_ours(f"{start}.tmp-{MARK}-{name}")
    assert not is_ours(f"{start}.tmp-{MARK[1:]}-{name}")
    assert not is_ours(f"mine/{path}")
    assert not is_ours(f"{path}.bak\n")


@pytest.mark.parametrize(
    "path",
    [
        "manifest.json",
        "report.html",
        ".work/thesis.txt",
        ".work/map/thesis.txt",
        f".work/map/{TASK[1:]}.json",
        "g0001-3f9c12ab/notes.txt",
        "g0001-3f9c12ab/wudao/notes.txt",
        "g0001-thesis/wudao/00000.bin",
        "removals/thesis.arrow",
        f".tmp-{MARK}-thesis.txt",
    ],
)
def test_files_of_others(path: str) -> None:
    assert not is_ours(path)


def put(directory: Path, *names: str) -> None:
    for name in names:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def left(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*"))


def test_a_folder_of_our_own_goes_as_a_whole(tmp_path: Path) -> None:
    work = tmp_path / ".work"
    put(work, f"map/{TASK}.json", f"plan/{TASK}.json", f"compact/{TASK[:16]}/train/a-00000-1.json")
    (work / "attempts").mkdir()
    assert remove_work(work) == []
    assert left(tmp_path) == []
    assert remove_work(work) == [], "there is none"


def test_what_others_put_there_stays(tmp_path: Path) -> None:
    work = tmp_path / ".work"
    put(work, f"map/{TASK}.json", "map/thesis.txt", f"merge/{TASK}.json", "thesis.txt")
    put(work, f".map/{TASK}.json")
    put(tmp_path, "elsewhere/thesis.txt", f"elsewhere/{TASK}.json")
    (work / "empty").mkdir()
    (work / "dedup").symlink_to(tmp_path / "elsewhere")
    (work / "map" / f"{TASK}-0000.tokens").symlink_to(tmp_path / "elsewhere" / "thesis.txt")
    assert remove_work(work, "merge") == []
    linked = f"map/{TASK}-0000.tokens"
    theirs = [f".map/{TASK}.json", "dedup", linked, "map/thesis.txt", "thesis.txt"]
    assert remove_work(work) == theirs
    assert left(work) == sorted([*theirs, ".map", "empty", "map"])
    assert left(tmp_path / "elsewhere") == [f"{TASK}.json", "thesis.txt"]
    (tmp_path / "linked").symlink_to(work)
    assert remove_work(tmp_path / "linked") == [], "a link is not followed"


def test_unfinished_files_are_looked_for_in_our_folders_alone(tmp_path: Path) -> None:
    own = ["g0001-00aa/s", "removals", ".work/map", "."]
    names = ["00000.bin", "00001-0badcafe.arrow", f"{TASK}.json", "inputs.json"]
    unfinished = [f"{folder}/.tmp-{MARK}-{name}" for folder, name in zip(own, names, strict=True)]
    put(tmp_path, *unfinished, *(f"elsewhere/{path}" for path in unfinished))
    (tmp_path / "g0002-00aa").symlink_to(tmp_path / "elsewhere" / "g0001-00aa")
    before = left(tmp_path / "elsewhere")
    remove_unfinished(tmp_path)
    assert left(tmp_path / "elsewhere") == before
    assert [path for path in left(tmp_path) if ".tmp" in path and "elsewhere" not in path] == []


def test_behind_a_url() -> None:
    work = RemotePath(f"memory://{uuid.uuid4().hex}/.work")
    for name in (f"map/{TASK}.json", f"attempts/{TASK}-{MARK}-{MARK}.json", "map/thesis.txt"):
        (work / name).write(b"x")
    assert remove_work(work, "attempts") == []
    assert sorted(files(work)) == [f"map/{TASK}.json", "map/thesis.txt"]
    assert remove_work(work) == ["map/thesis.txt"]
    assert sorted(files(work)) == ["map/thesis.txt"]
    work.remove(["map/thesis.txt"])
