"""Archives whose content is larger than memory; golden rows and the soak test all others."""

import bz2
import gzip
import lzma
import tracemalloc
from pathlib import Path

import pytest
import zstandard

from pipelines.read.formats import open_reader, splits
from pipelines.read.json_array import JsonArrayReader
from pipelines.read.lines import JsonLinesReader
from tests.pipelines.read.readings import damages, input_format, values, written

PACKERS = {
    "gz": lambda raw: gzip.compress(raw, mtime=0),
    "zst": zstandard.compress,
    "bz2": bz2.compress,
    "xz": lambda raw: lzma.compress(raw, preset=0),  # the window of this preset is small
}


@pytest.mark.parametrize("form", ["jsonl", "json"])
@pytest.mark.parametrize("kind", ["", *PACKERS])
def test_a_bomb_takes_bounded_memory(kind: str, form: str, tmp_path: Path) -> None:
    # In the smallest step, zstd may keep 64 MiB in memory.
    size, bound = (192 << 20, 80 << 20) if kind == "zst" else (32 << 20, 8 << 20)
    before = b"[" if form == "json" else b""
    start, end = before + b'{"text":"', b'"}' + (b"]" if form == "json" else b"\n")
    raw = start + b"x" * size + end
    name = f"a.{form}.{kind}".rstrip(".")
    file = written(tmp_path / name, PACKERS[kind](raw) if kind else raw)
    del raw
    (split,) = splits(file, input_format(), split_bytes=file.bytes)
    reader = open_reader(split, input_format(max_record_bytes=1 << 20))
    assert isinstance(reader, JsonLinesReader | JsonArrayReader)
    reader.block_bytes = 1 << 18
    tracemalloc.start()
    try:
        items = list(reader)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    at, length, reason = damages(items)[0]
    assert (at, reason) == (len(before), "too-long")
    assert length >= size + 11
    assert not values(items)
    assert peak < bound
