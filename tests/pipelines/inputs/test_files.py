from functools import partial
from pathlib import Path

import pytest

from pipelines.inputs.files import Listing, list_inputs, match_inputs
from shards.errors import UserError
from tests.pipelines.privileges import without_privileges


def test_a_path_that_exists_is_no_name_and_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "a=b"
    folder.mkdir()
    (folder / "part-1.json").write_bytes(b"[]")
    for spec in (str(folder), f"{folder}/*", f"file://{folder}"):
        (file,) = match_inputs([spec], pattern="part-*.json", default_name="wudao")
        assert (file.source, file.relative) == ("wudao", "part-1.json")


LONG = "x" * 300


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("\udcff", r"^The input \\xff is not UTF-8: rename what it names"),
        ("a\udcff={}", r"^The input a\\xff=.* is not UTF-8"),
        ("s3://b/\udcff", r"^The input s3://b/\\xff is not UTF-8"),
        ("{}/" + "/".join([LONG[:99]] * 50), r"[x/]\.\.\. \(\d{4} more characters\) cannot be"),
        ("{}/a\0b", r"corpus/a␀b is not a path \(embedded null byte\)\."),
    ],
)
def test_odd_specs_are_refused_in_a_paragraph(spec: str, message: str, corpus: Path) -> None:
    (corpus / "z\n\x1b[31mz").touch()
    for find in (match_inputs, partial(list_inputs, growing=True)):
        with pytest.raises(UserError, match=message) as raised:
            find([spec.format(corpus)], pattern="*", default_name="x")
        assert str(raised.value).isprintable()


def test_a_file_may_be_in_a_folder_that_cannot_be_searched(corpus: Path) -> None:
    def look() -> Listing:
        with without_privileges():
            return list_inputs(
                [str(corpus)], pattern="part-*.json", default_name="wudao", growing=True
            )

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
