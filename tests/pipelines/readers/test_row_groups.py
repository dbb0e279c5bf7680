import io
import itertools
from pathlib import Path

import google_crc32c
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.readers.row_groups import (
    HELD_BYTES,
    RangeFile,
    first_bytes,
    first_rows,
    groups_in,
    open_parquet,
    runs,
)
from shards.errors import UserError


def written(path: Path, *, rows: int, group: int) -> pq.FileMetaData:
    texts = [f"{row:09}" * 10 for row in range(rows)]
    pq.write_table(
        pa.table({"text": texts}),
        path,
        row_group_size=group,
        compression="none",
        use_dictionary=False,
    )
    return pq.read_metadata(path)


def test_groups_have_rows_and_bytes_without_gaps(tmp_path: Path) -> None:
    metadata = written(tmp_path / "a.parquet", rows=8, group=3)
    size = (tmp_path / "a.parquet").stat().st_size
    edges = first_bytes(metadata, size)
    assert first_rows(metadata) == [0, 3, 6, 8]
    assert edges[0] == 0
    assert edges[-1] == size
    assert edges == sorted(set(edges))
    assert groups_in(metadata, size, start=3, end=8) == [
        (1, (edges[1], edges[2])),
        (2, (edges[2], size)),
    ]
    assert groups_in(metadata, size, start=0, end=3) == [(0, (0, edges[1]))]


@pytest.mark.parametrize("use_dictionary", [True, False])
@pytest.mark.parametrize("columns", [1, 3, 20])
def test_a_group_begins_with_its_first_page(columns: int, use_dictionary: bool) -> None:
    texts = [f"{row % 7}" * (row % 5) for row in range(100)]
    sink = io.BytesIO()
    content = pa.table({f"c{column}": texts for column in range(columns)})
    pq.write_table(content, sink, row_group_size=9, use_dictionary=use_dictionary)
    metadata = pq.ParquetFile(sink).metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    sizes = [
        sum(group.column(number).total_compressed_size for number in range(columns))
        for group in groups
    ]
    starts = itertools.accumulate(sizes[:-1], initial=len(b"PAR1"))
    size = len(sink.getvalue())
    assert first_bytes(metadata, size) == [0, *itertools.islice(starts, 1, None), size]


def test_runs_are_about_as_long_as_a_split(tmp_path: Path) -> None:
    metadata = written(tmp_path / "a.parquet", rows=8, group=3)
    size = (tmp_path / "a.parquet").stat().st_size
    assert runs(metadata, file_bytes=size, split_bytes=1) == [(0, 3), (3, 6), (6, 8)]
    assert runs(metadata, file_bytes=size, split_bytes=size) == [(0, 8)]
    two_groups = first_bytes(metadata, size)[2]
    assert runs(metadata, file_bytes=size, split_bytes=two_groups) == [(0, 6), (6, 8)]
    empty = written(tmp_path / "b.parquet", rows=0, group=3)
    assert runs(empty, file_bytes=100, split_bytes=1) == [(0, 0)]


def test_what_is_not_parquet_is_refused() -> None:
    with pytest.raises(UserError, match=r"a\.parquet cannot be read as Parquet: .*footer"):
        open_parquet(io.BytesIO(b"PAR1 and more"), "a.parquet")


@pytest.mark.parametrize("held", [10, HELD_BYTES])
def test_a_range_file_adds_up_the_checksum_of_its_ranges(
    held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.readers.row_groups.HELD_BYTES", held)
    raw = bytes(range(100))
    file = RangeFile(io.BytesIO(raw), "a.parquet", file_bytes=100)
    file.take(0, 30)
    file.take(30, 90)
    assert file.crc32c == google_crc32c.value(raw[:90])
    assert file.seek(40) == file.tell() == 40
    assert file.read(20) == raw[40:60]
    assert file.seek(-5, io.SEEK_END) == 95
    assert file.read() == raw[95:]
    with pytest.raises(UserError, match=r"a\.parquet ended at byte 100 of 100: it changed"):
        file.take(90, 110)


def test_an_error_of_the_disk_is_kept() -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(5, f"no {size} bytes")

    file = RangeFile(Broken(), "a.parquet", file_bytes=100)
    with pytest.raises(OSError, match="no 8 bytes"):
        file.read(8)
    assert file.error is not None
