from pathlib import Path

import pytest

from pipelines.inputs.files import InputFile, match_inputs
from pipelines.readers.reading import Reading
from pipelines.replay.original import check_unchanged, entries_of, find_again
from shards.errors import UserError
from shards.manifest import InputEntry
from shards.reader import Dataset
from shards.storage.files import crc32c_of, write_json

KEY = ("s", "a.jsonl")
CONTENT = b'{"text": "one"}\n{"text": "two"}\n'
READINGS = {"s": Reading(format="jsonl", text_fields=("text",))}


@pytest.fixture
def file(tmp_path: Path) -> InputFile:
    """The only input of a dataset in `tmp_path / "dataset"`, as it was then."""
    path = tmp_path / "in" / "a.jsonl"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    (found,) = match_inputs([f"s={path.parent}"], pattern="*.jsonl", default_name="s")
    (tmp_path / "dataset").mkdir()
    entry = {"source": "s", "path": "a.jsonl", "from": str(path)}
    times = {"mtime_ns": found.mtime_ns, "etag": found.etag}
    write_json(tmp_path / "dataset" / "inputs.json", [{**entry, **times}])
    return found


def find(tmp_path: Path, *moved: str) -> list[InputFile]:
    return find_again(
        tmp_path / "dataset", [KEY], moved=moved, patterns={"s": "*.jsonl"}, default_name="s"
    )


def test_a_file_is_found_where_it_was_and_where_it_is_said_to_be(
    tmp_path: Path, file: InputFile
) -> None:
    assert find(tmp_path) == [file]
    (tmp_path / "in").rename(tmp_path / "moved")
    with pytest.raises(UserError, match=r"if it was moved, give its new path: --input s=PATH"):
        find(tmp_path)
    (found,) = find(tmp_path, f"s={tmp_path / 'moved'}")
    assert found.path == str(tmp_path / "moved" / "a.jsonl")
    assert (found.source, found.relative, found.bytes) == ("s", "a.jsonl", len(CONTENT))


def test_what_is_not_there_is_asked_for(tmp_path: Path, file: InputFile) -> None:
    Path(file.path).rename(tmp_path / "in" / "b.jsonl")
    with pytest.raises(UserError, match=r"--input s=…: there is no a\.jsonl in it \(1 of the"):
        find(tmp_path, f"s={tmp_path / 'in'}")
    with pytest.raises(UserError, match=r"the dataset has no such source: .*ive one of s, as NAME"):
        find(tmp_path, f"t={tmp_path / 'in'}")
    (tmp_path / "dataset" / "inputs.json").unlink()
    with pytest.raises(UserError, match=r"the path of a\.jsonl of s is unknown: .*--input s=PATH"):
        find(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (CONTENT, None),
        (CONTENT + b"\n", r"it has 33 bytes and had 32\. The recorded positions no longer apply"),
        (CONTENT.replace(b"two", b"six"), r"it has other bytes \(crc32c\)"),
    ],
)
def test_a_file_is_compared_by_size_and_bytes(
    tmp_path: Path, file: InputFile, content: bytes, message: str | None
) -> None:
    path = Path(file.path)
    path.write_bytes(content)
    (tmp_path / "dataset" / "inputs.json").unlink()  # no time to compare
    (now,) = match_inputs([f"s={path.parent}"], pattern="*.jsonl", default_name="s")
    entry = InputEntry(source="s", path="a.jsonl", bytes=32, crc32c=(crc32c_of(CONTENT),))

    def check() -> None:
        check_unchanged(
            [now],
            {KEY: entry},
            directory=tmp_path / "dataset",
            readings=READINGS,
            split_bytes=1 << 20,
        )

    if message is None:
        check()
    else:
        with pytest.raises(UserError, match=message):
            check()


def test_the_files_of_a_dataset_are_those_of_its_manifest(reference: Path) -> None:
    entries = entries_of(Dataset.open(reference).manifest)
    assert len(entries) == 4
    assert {source for source, _ in entries} == {"wudao"}
    assert all(len(entry.crc32c) > 1 for entry in entries.values())
