import io
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.readers.footer import first_pages
from pipelines.readers.row_groups import first_bytes


def table(columns: int, rows: int) -> pa.Table:
    texts = [f"{row % 7}" * (row % 5) for row in range(rows)]
    return pa.table({f"c{column}": texts for column in range(columns)})


def written(content: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(content, sink, row_group_size=3, **options)
    return sink.getvalue()


def footer_of(raw: bytes) -> bytes:
    size = int.from_bytes(raw[-8:-4], "little")
    return raw[-8 - size : -8]


@pytest.mark.parametrize("use_dictionary", [True, False])
@pytest.mark.parametrize("columns", [1, 3, 20])
@pytest.mark.parametrize("rows", [0, 1, 8, 100])
def test_the_offsets_are_those_of_pyarrow(columns: int, rows: int, use_dictionary: bool) -> None:
    raw = written(table(columns, rows), use_dictionary=use_dictionary)
    metadata = pq.ParquetFile(io.BytesIO(raw)).metadata
    expected = []
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        chunks = [group.column(number) for number in range(group.num_columns)]
        starts = [(chunk.data_page_offset, chunk.dictionary_page_offset) for chunk in chunks]
        expected.append(min(min(page, first) if first else page for page, first in starts))
    assert first_pages(footer_of(raw)) == tuple(expected)
    assert first_bytes(metadata, len(raw)) == [0, *expected[1:], len(raw)]


def test_a_damaged_footer_is_an_error_or_some_offsets() -> None:
    """Whatever the bytes, the interpreter lives and the end comes soon."""
    footer = footer_of(written(table(3, 8)))
    draw = random.Random(1)
    failed = 0
    for _ in range(2000):
        raw = bytearray(footer)
        for _ in range(draw.choice((1, 1, 5))):
            raw[draw.randrange(len(raw))] = draw.randrange(256)
        try:
            assert all(isinstance(page, int) for page in first_pages(bytes(raw)))
        except ValueError:
            failed += 1
    assert 100 < failed < 2000
    for size in range(len(footer) - 400):
        with pytest.raises(ValueError, match=r"it ends too early|has no place"):
            first_pages(footer[: size + 5])
