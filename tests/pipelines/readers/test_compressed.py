import bz2
import gzip
import itertools
import tracemalloc
from pathlib import Path

import orjson
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.readers.json_array import JsonArrayReader
from pipelines.readers.jsonl import object_line
from pipelines.readers.lines import LineReader
from pipelines.readers.reading import splits
from pipelines.readers.record import Reader, Record
from tests.pipelines.readers.readings import (
    damages,
    read_file,
    reading,
    values,
    written,
)


def gzipped(raw: bytes) -> bytes:
    return gzip.compress(raw, mtime=0)


def zstd(raw: bytes) -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, write_checksum=True)
    return zstandard.ZstdCompressor(compression_params=parameters).compress(raw)


PACKERS = {"gz": gzipped, "zst": zstd, "bz2": bz2.compress}
LINES = [f'{{"text":"line {index} {"好" * index}"}}\n'.encode() for index in range(8)]

ARRAY = b"[" + b",\n".join(line.strip() for line in LINES) + b"]\n"

KINDS = pytest.mark.parametrize("kind", PACKERS)


def texts(lines: list[bytes]) -> list[str]:
    return [line.decode()[9:-3] for line in lines]


def _reason_of_cut(kind: str, length: int) -> str:
    """Python's gzip takes a single byte of a member for something else."""
    return "bad-archive" if (kind, length) == ("gz", 1) else "truncated"


@pytest.mark.parametrize("form", ["jsonl", "json"])
@KINDS
def test_cut_anywhere_nothing_before_the_cut_is_lost(kind: str, form: str, tmp_path: Path) -> None:
    raw, half = (b"".join(LINES), sum(map(len, LINES[:4]))) if form == "jsonl" else (ARRAY, 100)
    ends = [raw.index(line.strip()) + len(line.strip()) for line in LINES]
    first, second = PACKERS[kind](raw[:half]), PACKERS[kind](raw[half:])
    packed = first + second
    for cut in range(1, len(packed)):
        items = read_file(written(tmp_path / f"a.{form}.{kind}", packed[:cut]), reading(form))
        whole = values(items)
        assert whole == [{"text": text} for text in texts(LINES)[: len(whole)]]
        # The last eight bytes of gzip are checks of what was read.
        readable = len(raw) if kind == "gz" and len(packed) - cut <= 8 else half
        assert cut < len(first) or len(whole) >= sum(end <= readable for end in ends)
        if form == "jsonl" and cut == len(first):
            assert not damages(items)
            continue
        ((at, _, reason),) = damages(items)
        assert 0 <= at - (ends[len(whole) - 1] if whole else 0) <= 2
        assert reason == _reason_of_cut(kind, cut - len(first) if cut > len(first) else cut)


@KINDS
def test_damage_costs_what_follows_it(kind: str, tmp_path: Path) -> None:
    pack = PACKERS[kind]
    first, second = pack(b"".join(LINES[:4])), pack(b"".join(LINES[4:]))
    for at in range(len(second)):
        broken = second[:at] + bytes([second[at] ^ 0x55]) + second[at + 1 :]
        items = read_file(written(tmp_path / f"a.jsonl.{kind}", first + broken), reading())
        assert values(items)[:4] == [{"text": text} for text in texts(LINES[:4])]
        assert {reason for _, _, reason in damages(items)} <= {
            "bad-archive", "truncated", "bad-json", "bad-utf8", "not-an-object",
        }  # fmt: skip
        assert damages(items) or len(values(items)) == 8


@pytest.mark.parametrize("form", ["jsonl", "json"])
@pytest.mark.parametrize("kind", ["", *PACKERS])
def test_a_bomb_takes_bounded_memory(kind: str, form: str, tmp_path: Path) -> None:
    # The smallest step of zstd may hold 64 MiB.
    size, bound = (192 << 20, 80 << 20) if kind == "zst" else (32 << 20, 8 << 20)
    before = b"[" if form == "json" else b""
    start, end = before + b'{"text":"', b'"}' + (b"]" if form == "json" else b"\n")
    raw = start + b"x" * size + end
    name = f"a.{form}.{kind}".rstrip(".")
    file = written(tmp_path / name, PACKERS[kind](raw) if kind else raw)
    del raw
    (split,) = splits(file, reading(), split_bytes=file.bytes)
    bounds = {"max_record_bytes": 1 << 20, "block_bytes": 1 << 18}
    reader: Reader = LineReader(split, object_line, **bounds)
    if form == "json":
        reader = JsonArrayReader(split, text_fields=(), **bounds)
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


@given(
    cuts=st.lists(st.integers(0, 300), max_size=4),
    kind=st.sampled_from(sorted(PACKERS)),
    lines=st.lists(st.text(max_size=20), max_size=12),
    form=st.sampled_from(["txt", "json"]),
)
@settings(max_examples=40, deadline=None)
def test_members_read_as_their_content(
    cuts: list[int],
    kind: str,
    lines: list[str],
    form: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    raw = "\n".join(lines).encode()
    if form == "json":
        raw = orjson.dumps({"RECORDS": [{"text": line} for line in lines], "n": 1})
    folder = tmp_path_factory.mktemp("members")
    edges = [0, *sorted(cuts), len(raw) + 300]
    packed = b"".join(PACKERS[kind](raw[a:b]) for a, b in itertools.pairwise(edges))
    items = read_file(written(folder / f"a.{form}.{kind}", packed), reading())
    plain = read_file(written(folder / f"a.{form}", raw), reading()) if raw else []
    assert items == plain
    assert all(isinstance(item, Record) for item in items)
