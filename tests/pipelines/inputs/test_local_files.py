import os
from pathlib import Path

import pytest

from pipelines.inputs.local_files import absence, find_local
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


def test_folder_without_matches_says_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"matches 'part-\*.json'; .* is empty\."):
        found(str(tmp_path))
    for name in "gfedcba":
        (tmp_path / name).touch()
    with pytest.raises(
        UserError, match=r"matches 'part-\*.json'; .* holds a, b, c, d, e and 2 more\."
    ):
        found(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("a.csv", "CSV is read once it is Parquet: "),
        ("a.TSV.gz", "CSV is read once it is Parquet: "),
        ("a.warc.gz", "Unpack archives first; a corpus of your own reads other formats"),
    ],
)
def test_what_to_do_with_files_that_no_command_reads(
    tmp_path: Path, name: str, advice: str
) -> None:
    (tmp_path / name).touch()
    with pytest.raises(UserError, match=rf"holds {name}\. {advice}"):
        found(str(tmp_path))


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("corpra/pile/a.json", "corpora/pile/a.json"),
        ("corpora/pil/a.json", "corpora/pile/a.json"),
        ("corpra/other", "corpora"),
        ("corpora/pile/a.jso", "corpora/pile/a.json"),
        ("corpora/zzz", ""),
        ("zzz/pile", ""),
    ],
)
def test_the_nearest_name_is_asked_for(tmp_path: Path, path: str, meant: str) -> None:
    (tmp_path / "corpora/pile").mkdir(parents=True)
    (tmp_path / "corpora/pile/a.json").touch()
    why = absence(tmp_path / path)
    asked = why.removeprefix("does not exist").partition(";")[0]
    assert asked == (f" (did you mean {tmp_path / meant}?)" if meant else "")
    assert not absence(tmp_path / "corpora")


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


@pytest.mark.parametrize(
    ("content", "command"),
    [
        ("version https://git-lfs.github.com/spec/v1\noid sha256:9f\nsize 12345\n", "git lfs pull"),
        ("/annex/objects/SHA256E-s12345--9f.json\n", "git annex get"),
    ],
)
def test_what_stands_for_a_file_that_was_not_fetched_is_no_input(
    corpus: Path, content: str, command: str
) -> None:
    (corpus / "part-2.json").write_text(content)
    (corpus / "part-10.json").write_text(content + 1024 * "\n")  # too long for one
    files, refused = find_local(str(corpus), ("part-*.json",))
    assert [file.relative for file in files] == ["part-10.json", "sub/part-1a.json"]
    why = f"stands for a file that was not fetched: {command} fetches it"
    assert {file.relative: told for file, told in refused.items()} == {"part-2.json": why}


def test_where_files_arrive_there_may_be_none_but_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    assert find_local(str(folder), ("*.json",), growing=True) == ([], {})
    assert find_local(f"{folder}/*.json", (), growing=True) == ([], {})
    for missing in (tmp_path / "none", tmp_path / "none" / "*.json"):
        with pytest.raises(UserError, match=r"none"):
            find_local(str(missing), ("*.json",), growing=True)


LONG = "x" * 300


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            LONG,
            rf"/{LONG} cannot be reached \(File name too long\); check the path and the rights of",
        ),
        (f"{LONG}*", rf"No file matches .*/{LONG}\*; .*corpus holds part-10\.json, part-2\.json, "),
        (
            f"{LONG}/*",
            rf"No file matches .*/{LONG}/\*; the folder .* cannot be listed \(File name to",
        ),
        (
            "/".join([LONG[:99]] * 50),
            r"xxxx\.\.\. \(\d{4} more characters\) cannot be reached \(File n",
        ),
        ("a\nb", r"corpus/a␊b does not exist; "),
        ("part-2.json/x", r"part-2\.json/x does not exist; there is no folder .*/part-2\.json\."),
        ("a\0b", r"corpus/a␀b is not a path \(embedded null byte\)\."),
    ],
    ids=range(7),
)
def test_odd_paths_are_refused_in_a_paragraph(corpus: Path, spec: str, message: str) -> None:
    (corpus / "z\n\x1b[31mz").touch()
    with pytest.raises(UserError, match=message) as raised:
        find_local(f"{corpus}/{spec}", ())
    assert str(raised.value).isprintable()
