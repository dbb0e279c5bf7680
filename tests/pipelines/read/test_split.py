import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.read.files import InputFile
from pipelines.read.split import Link, Split, seamless, split_file


def input_file(num_bytes: int) -> InputFile:
    return InputFile(source="s", path="/p", relative="r", bytes=num_bytes, mtime_ns=7, etag="e")


@pytest.mark.parametrize(
    ("num_bytes", "split_bytes", "edges"),
    [
        (100, 100, [0, 100]),
        (149, 100, [0, 149]),  # a tail of 49 joins
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


@given(st.data())
def test_seamless_chains_read_everything_once(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 40))
    starts = sorted(data.draw(st.sets(st.integers(0, size - 1), max_size=8)) | {0})
    seen = sorted(set(starts) | data.draw(st.sets(st.integers(0, size - 1), max_size=2)))
    splits = split_file(input_file(size), data.draw(st.integers(1, 15)))

    def read(split: Split) -> tuple[Link, list[int]]:
        """Start at the first thing that looks like a record, go on from true record to true."""
        first = next((at for at in seen if split.start <= at < split.end), None)
        if first is None:
            return Link(end=split.end, first=None, next=None), []
        true = [at for at in starts if at > first]
        stop = next((at for at in true if at >= split.end), size)
        return Link(end=split.end, first=first, next=stop), [
            first,
            *(at for at in true if at < stop),
        ]

    readings = [read(split) for split in splits]
    if seamless([link for link, _ in readings]):
        assert [at for _, offsets in readings for at in offsets] == starts
    else:
        assert seen != starts
