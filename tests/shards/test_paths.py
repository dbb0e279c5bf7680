from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.errors import DamageError, UserError
from shards.paths import check_links, check_relative, check_sources, join_checked
from shards.storage.remote import RemotePath

OUT = [
    "", ".", "..", "/", "/a", "a/", "a//b", "./a", "a/.", "a/..", "../a", "a/../b", "a\\b", "a\0b",
    "a\nb", "\x1b[31m", "s3://a/b", "\ud800", "a/\udfff", "x" * 1001,
]  # fmt: skip


@pytest.mark.parametrize("path", OUT)
def test_paths_that_mean_no_file_below_a_folder(path: str) -> None:
    with pytest.raises(ValueError, match="is not a path below a folder"):
        check_relative(path)
    with pytest.raises(ValueError, match="is not "):
        join_checked(Path("out"), path)


@pytest.mark.parametrize(
    "path", ["a", "...", "..a", ".work/map/x.tokens", "g0001-00/工/0.bin", "a b"]
)
def test_paths_below_a_folder(path: str) -> None:
    check_relative(path)


@given(st.text("./\\a\0", max_size=8))
def test_a_path_that_is_taken_leads_nowhere_else(path: str) -> None:
    try:
        check_relative(path)
    except ValueError:
        return
    assert (Path("/in") / path).is_relative_to("/in")
    assert ".." not in Path(path).parts
    assert (Path("/in") / path).relative_to("/in").as_posix() == path, "spelt in one way"


def test_every_name_is_one_part_of_a_path() -> None:
    assert join_checked(Path("out"), "g0001-00", "news", "0.bin") == Path("out/g0001-00/news/0.bin")
    url = join_checked(RemotePath("s3://bucket/out"), "g0001-00", "news")
    assert url == RemotePath("s3://bucket/out/g0001-00/news")
    with pytest.raises(ValueError, match=r"'a/b' is not the name of a file or folder"):
        join_checked(Path("out"), "a/b")


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


@pytest.mark.parametrize("name", ["g", "g/s", "g/s/0.bin"])
def test_no_link_leads_out(tmp_path: Path, name: str) -> None:
    link(tmp_path / "in" / name, tmp_path / "elsewhere")
    paths = ["v.arrow", "g/s/0.bin", "missing/s/0.bin"]
    with pytest.raises(DamageError, match=rf"{name}.* is a link to .*elsewhere.*, outside"):
        check_links(tmp_path / "in", paths)
    if name != "g/s/0.bin":
        with pytest.raises(DamageError, match="is a link to"):
            check_links(tmp_path / "in", paths, files=False)


def test_other_links_are_nobodys_concern(tmp_path: Path) -> None:
    (tmp_path / "in" / "g" / "real").mkdir(parents=True)
    link(tmp_path / "in" / "g" / "s", tmp_path / "in" / "g" / "real")
    link(tmp_path / "in" / "g" / "0.idx", tmp_path / "elsewhere")
    link(tmp_path / "linked", tmp_path / "in")
    check_links(tmp_path / "linked", ["g/s/0.bin", "g/0.bin"])
    link(tmp_path / "in" / "g" / "0.bin", tmp_path / "elsewhere")
    check_links(tmp_path / "in", ["g/0.bin"], files=False)


def test_names_that_sources_may_have() -> None:
    check_sources(["wudao", "Pile_CC", "cc-news.2024", "a", "_x", "x" * 100, "console", "com"])


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", ".x", "-x", "x.", "a b", "a/b", "新闻", "é", "a\n", "x\0", "a:b", "a*"),
        *("audit", "Signatures", "rejects", "dropped"),
        *("con", "NUL", "com1", "lpt9.txt", "aux.a.b", "x" * 101),
    ],
)
def test_names_that_sources_may_not_have(name: str) -> None:
    with pytest.raises(UserError, match=r"the source name .* is not allowed") as raised:
        check_sources([name, "fine"])
    assert "\n" not in str(raised.value)
    check_sources([name, "fine"], present=[name])


def test_two_sources_are_two_folders_everywhere() -> None:
    with pytest.raises(UserError, match="'News' and 'news' differ only in upper and lower"):
        check_sources(["news", "News"])
    with pytest.raises(UserError, match="'news' and 'News' differ only in"):
        check_sources(["news"], present=["News"])
    check_sources(["news", "News"], present=["News", "news"])
