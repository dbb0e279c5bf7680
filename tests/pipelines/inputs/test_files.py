import os
from pathlib import Path

import pytest

from pipelines.inputs.files import (
    Listing,
    list_inputs,
    match_inputs,
    open_input,
)
from shards.errors import UserError
from tests.pipelines.privileges import without_privileges


def match(*specs: str) -> list[tuple[str, str]]:
    files = match_inputs(specs, pattern="part-*.json", default_name="wudao")
    return [(file.source, file.relative) for file in files]


def test_folder_is_searched_with_the_pattern(corpus: Path) -> None:
    names = ["part-10.json", "part-2.json", "sub/part-1a.json"]
    assert match(str(corpus)) == [("wudao", name) for name in names]
    assert match(f"{corpus}/") == match(str(corpus))
    assert match(f"news={corpus}") == [("news", name) for name in names]


def test_relative_paths_are_relative_to_the_working_folder(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus)
    assert match("part-2*") == match("part-2.json") == [("wudao", "part-2.json")]
    (file,) = match_inputs(["sub"], pattern="*", default_name="x")
    assert file.path == str(corpus / "sub" / "part-1a.json")
    assert file.bytes == 2
    assert file.mtime_ns == (corpus / "sub" / "part-1a.json").stat().st_mtime_ns


def test_existing_path_with_an_equals_sign_is_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "a=b"
    folder.mkdir()
    (folder / "part-1.json").write_bytes(b"[]")
    assert match(str(folder)) == match(f"{folder}/*") == [("wudao", "part-1.json")]


def test_links_are_other_names_within_an_input_and_refused_between_two(corpus: Path) -> None:
    before = match(str(corpus))
    (corpus / "part-1.json").symlink_to(corpus / "part-2.json")
    (corpus / "sub" / "again").symlink_to(corpus)
    assert match(str(corpus)) == before
    assert match(f"{corpus}/*.json") == [("wudao", f"part-{name}.json") for name in ("10", "2")] + [
        ("wudao", "parts.json")
    ]
    assert match(f"{corpus}/part-1.json") == [("wudao", "part-1.json")]
    with pytest.raises(UserError, match=r"given twice, in 'a' as part-2.json and in 'b' as part-1"):
        match(f"a={corpus}", f"b={corpus}/part-1.json")


def test_all_that_cannot_be_read_is_named_at_once(corpus: Path) -> None:
    (corpus / "part-2.json").write_bytes(b"")
    (corpus / "part-3.json").symlink_to("no\nthing")
    (corpus / os.fsdecode(b"part-\xff.json")).write_bytes(b"[]")
    for number in range(4):
        os.mkfifo(corpus / f"part-4{number}.json")
    with pytest.raises(
        UserError,
        match=r"^7 files or folders of the input cannot be read: .*/part-2\.json is empty \(0 by.*"
        r"; .*/part-3\.json is a link to no␊thing, where .*or a folder and 2 more\. Mend the "
        r"input, or remove what is not part of it\.$",
    ) as raised:
        match(str(corpus))
    assert str(raised.value).isprintable()
    listing = list_inputs([str(corpus)], pattern="part-*.json", default_name="wudao")
    assert [file.relative for file in listing.files] == ["part-10.json", "sub/part-1a.json"]
    assert len(listing.refused) == 7


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("\udcff", r"^The input \\xff is not UTF-8: rename what it names"),
        ("a\udcff={}", r"^The input a\\xff=.* is not UTF-8"),
        ("a={}/\ud800", r"^The input a=.*/‹U\+D800› is not UTF-8"),
        ("s3://b/\udcff", r"^The input s3://b/\\xff is not UTF-8"),
        ("hf:a/b@\udcff", r"^The input hf:a/b@\\xff is not UTF-8"),
        ("hf:a\n/b", r"^The input hf:a␊/b does not name a dataset of the Hugging Face hub"),
        ("a\nb={}", r"^The name 'a␊b' of the input 'a␊b=.*' is not allowed"),
        ("x" * 300, r"^The input x{300} cannot be reached \(File name too long\)"),
        (f"a={'x' * 300}", r"^The input x{300} cannot be reached \(File name too long\)"),
        (f"file://{'x' * 300}", r"^The input x{300} cannot be reached \(File name too long\)"),
    ],
    ids=range(10),
)
def test_odd_specs_are_refused_in_a_paragraph(spec: str, message: str, corpus: Path) -> None:
    with pytest.raises(UserError, match=message) as raised:
        match(spec.format(corpus))
    assert str(raised.value).isprintable()


def test_a_file_may_be_in_a_folder_that_cannot_be_searched(corpus: Path) -> None:
    def look() -> Listing:
        with without_privileges():
            specs, pattern = [str(corpus)], "part-*.json"
            return list_inputs(specs, pattern=pattern, default_name="wudao", growing=True)

    files = look().files
    (corpus / "sub").chmod(0)
    (corpus / "part-2.json").unlink()
    (corpus / "part-10.json").chmod(0)
    listing = look()
    assert [file.relative for file in listing.refused] == ["part-10.json", "sub/"]
    assert [file.relative for file in files if listing.may_have(file.source, file.relative)] == [
        "part-10.json",
        "sub/part-1a.json",
    ]
    assert not listing.may_have("other", files[-1].relative)


def test_missing_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"Cannot read the input .*gone: No such file"):
        open_input(str(tmp_path / "gone"))
