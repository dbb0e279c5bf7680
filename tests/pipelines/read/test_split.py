import pytest

from pipelines.read.files import InputFile
from pipelines.read.split import split_file


def input_file(num_bytes: int) -> InputFile:
    return InputFile(source="s", path="/p", relative="r", bytes=num_bytes, mtime_ns=7, etag="e")


@pytest.mark.parametrize(
    ("num_bytes", "split_bytes", "edges"),
    [
        (100, 100, [0, 100]),
        (149, 100, [0, 149]),  # the rest, of 49, joins the split
        (150, 100, [0, 100, 150]),
        (249, 100, [0, 100, 249]),
        (250, 100, [0, 100, 200, 250]),
        (3, 1, [0, 1, 2, 3]),
        (5, 3, [0, 3, 5]),
    ],
)
def test_a_file_is_cut_without_gaps(num_bytes: int, split_bytes: int, edges: list[int]) -> None:
    splits = split_file(input_file(num_bytes), split_bytes)
    assert [split.start for split in splits] == edges[:-1]
    assert [split.end for split in splits] == edges[1:]
    assert {(split.source, split.path, split.relative) for split in splits} == {("s", "/p", "r")}
    assert {(split.file_bytes, split.mtime_ns) for split in splits} == {(num_bytes, 7)}
    assert {split.etag for split in splits} == {"e"}
