import os
from pathlib import Path

import pytest

from pipelines.inputs.local_files import find_local
from shards.errors import UserError
from tests.pipelines.privileges import without_privileges


def found(path: str, *patterns: str) -> list[str]:
    files, refused = find_local(path, patterns or ("part-*.json",))
    assert not refused
    return [file.relative for file in files]


def test_a_folder_is_searched_and_a_file_is_taken(corpus: Path) -> None:
    assert found(str(corpus)) == ["part-10.json", "part-2.json", "sub/part-1a.json"]
    assert found(str(corpus), "*.txt", "part-2*") == ["part-2.json", "readme.txt"]
    ((file,), _) = find_local(str(corpus / "readme.txt"), ())
    assert (file.path, file.relative, file.bytes) == (f"{corpus}/readme.txt", "readme.txt", 2)
    assert (file.mtime_ns, file.etag) == ((corpus / "readme.txt").stat().st_mtime_ns, "")


def test_links_to_folders_are_followed_once(corpus: Path) -> None:
    (corpus / "sub" / "up").symlink_to(corpus)
    assert found(str(corpus)) == ["part-10.json", "part-2.json", "sub/part-1a.json"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("part-*.json", ["part-10.json", "part-2.json"]),
        ("*/part-*", ["sub/part-1a.json"]),
        ("**/part-*", ["part-10.json", "part-2.json", "sub/part-1a.json"]),
        ("s?b/*", ["sub/part-1a.json"]),
        ("part-[0-9].json", ["part-2.json"]),
        ("*", ["part-10.json", "part-2.json", "parts.json", "readme.txt"]),
    ],
)
def test_glob_is_relative_to_its_fixed_folder(pattern: str, names: list[str], corpus: Path) -> None:
    assert found(f"{corpus}/{pattern}") == names


def test_what_cannot_be_an_input_is_returned_apart(corpus: Path) -> None:
    os.mkfifo(corpus / "part-0.json")
    (corpus / os.fsdecode(b"part-\xff.json")).write_bytes(b"[]")
    (corpus / "part-10.json").chmod(0)
    with without_privileges():
        files, refused = find_local(str(corpus), ("part-*.json",))
    assert [file.relative for file in files] == ["part-2.json", "sub/part-1a.json"]
    assert {file.relative: why for file, why in refused.items()} == {
        "part-0.json": "is neither a file nor a folder",
        "part-10.json": "may not be read: check its permissions",
        "part-\\xff.json": "has a name that is not UTF-8: rename it",
    }
    assert all(file.path == f"{corpus}/{file.relative}" for file in refused)


def test_where_files_arrive_there_may_be_none_but_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    assert find_local(str(folder), ("*.json",), growing=True) == ([], {})
    assert find_local(f"{folder}/*.json", (), growing=True) == ([], {})
    for missing in (tmp_path / "none", tmp_path / "none" / "*.json"):
        with pytest.raises(UserError, match=r"none"):
            find_local(str(missing), ("*.json",), growing=True)


LONG = "x" * 300
