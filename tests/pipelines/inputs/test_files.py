from pathlib import Path

import pytest

from pipelines.inputs.files import Listing, list_inputs, match_inputs
from pipelines.inputs.input_file import NAMES_SHOWN, some_of
from tests.pipelines.privileges import without_privileges


def test_a_path_that_exists_is_no_name_and_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "a=b"
    folder.mkdir()
    (folder / "part-1.json").write_bytes(b"[]")
    for spec in (str(folder), f"{folder}/*", f"file://{folder}"):
        (file,) = match_inputs([spec], pattern="part-*.json", default_name="wudao")
        assert (file.source, file.relative) == ("wudao", "part-1.json")


def test_a_file_may_be_in_a_folder_that_cannot_be_searched(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    (corpus / "sub").mkdir(parents=True)
    for name in ("part-2.json", "part-10.json", "sub/part-1a.json"):
        (corpus / name).write_bytes(b"[]")

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


@pytest.mark.parametrize(("further", "more"), [(0, ""), (1, " and 1 more")])
def test_of_many_names_some_are_named(further: int, more: str) -> None:
    names = [f"{number}" for number in range(NAMES_SHOWN + further)]
    assert some_of(names) == ", ".join(names[:NAMES_SHOWN]) + more
