import os
from pathlib import Path

import pytest

from pipelines.inputs.local_files import find_local, look_local
from shards.errors import UserError


def found(path: str, *patterns: str) -> list[str]:
    return [file.relative for file in find_local(path, patterns or ("part-*.json",))]


def test_a_folder_is_searched_and_a_file_is_taken(corpus: Path) -> None:
    assert found(str(corpus)) == ["part-10.json", "part-2.json", "sub/part-1a.json"]
    assert found(str(corpus), "*.txt", "part-2*") == ["part-2.json", "readme.txt"]
    (file,) = find_local(str(corpus / "readme.txt"), ())
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


def test_folder_without_matches_says_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"matches 'part-\*.json'; .* is empty\."):
        found(str(tmp_path))
    for name in "gfedcba":
        (tmp_path / name).touch()
    with pytest.raises(
        UserError, match=r"matches 'part-\*.json'; .* holds a, b, c, d, e and 2 more\."
    ):
        found(str(tmp_path))


def test_unusable_files_are_refused(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, _: path.name != "part-10.json")
    with pytest.raises(UserError, match=r"part-10.json may not be read; check its permissions"):
        found(str(corpus))
    os.mkfifo(corpus / "part-0.json")
    with pytest.raises(UserError, match=r"part-0.json is neither a file nor a folder"):
        found(str(corpus / "part-0.json"))
    odd = os.fsdecode(b"part-\xff.json")
    (corpus / odd).write_bytes(b"[]")
    with pytest.raises(UserError, match=r"is not UTF-8; rename it"):
        found(str(corpus / odd))


def test_a_look_finds_nothing_in_an_empty_folder_but_not_without_one(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    assert look_local(str(folder), ("*.json",)) == ([], {})
    assert look_local(f"{folder}/*.json", ()) == ([], {})
    (folder / "a.json").write_text("[]")
    (folder / "gone.json").symlink_to(folder / "nothing")
    assert [file.relative for file in look_local(str(folder), ("*.json",))[0]] == ["a.json"]
    for missing in (tmp_path / "none", tmp_path / "none" / "*.json"):
        with pytest.raises(UserError, match=r"none"):
            look_local(str(missing), ("*.json",))


def test_a_look_refuses_unusable_files_and_returns_the_others(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (corpus / os.fsdecode(b"part-\xff.json")).write_bytes(b"[]")
    monkeypatch.setattr(os, "access", lambda path, _: path.name != "part-10.json")
    files, refused = look_local(str(corpus), ("part-*.json",))
    assert [file.relative for file in files] == ["part-2.json", "sub/part-1a.json"]
    assert {file.relative: why for file, why in refused.items()} == {
        "part-10.json": "may not be read; check its permissions",
        "part-\\xff.json": "has a name that is not UTF-8; rename it",
    }
