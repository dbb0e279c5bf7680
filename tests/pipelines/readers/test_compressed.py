import bz2
import gzip
import itertools
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.readers.compressed import compression, is_compressed
from pipelines.readers.json_array import JsonArrayReader
from pipelines.readers.jsonl import object_line
from pipelines.readers.lines import LineReader
from pipelines.readers.reading import splits
from pipelines.readers.record import Damage, Reader, Record
from tests.pipelines.readers.readings import (
    damages,
    input_file,
    read_file,
    read_in_splits,
    reading,
    values,
    written,
)

REAL = Path(__file__).parents[4] / "shared" / "data" / "corpora" / "pile" / "00.jsonl.zst"


def gzipped(raw: bytes) -> bytes:
    return gzip.compress(raw, mtime=0)


def zstd(raw: bytes) -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, write_checksum=True)
    return zstandard.ZstdCompressor(compression_params=parameters).compress(raw)


PACKERS = {"gz": gzipped, "zst": zstd, "bz2": bz2.compress}
LINES = [f'{{"text":"line {index} {"好" * index}"}}\n'.encode() for index in range(8)]
SKIPPABLE = b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"12345"

KINDS = pytest.mark.parametrize("kind", PACKERS)


def texts(lines: list[bytes]) -> list[str]:
    return [line.decode()[9:-3] for line in lines]


@KINDS
def test_one_member_and_many(kind: str, tmp_path: Path) -> None:
    pack = PACKERS[kind]
    one = pack(b"".join(LINES))
    # A line may go on in the next member, and a member may be empty.
    many = pack(b"".join(LINES[:3]) + LINES[3][:9]) + pack(b"") + pack(LINES[3][9:])
    many += b"".join(pack(line) for line in LINES[4:])
    for packed in (one, many):
        file = written(tmp_path / f"a.jsonl.{kind}", packed)
        items = read_file(file, reading())
        assert [value["text"] for value in values(items)] == texts(LINES)
        assert [item.offset for item in items] == [
            sum(map(len, LINES[:index])) for index in range(len(LINES))
        ]
        assert not damages(items)
        assert len(splits(file, reading(), split_bytes=10)) == 1
        assert read_in_splits(file, reading(), split_bytes=10) == items


@KINDS
def test_an_empty_archive_holds_nothing(kind: str, tmp_path: Path) -> None:
    file = written(tmp_path / f"a.jsonl.{kind}", PACKERS[kind](b""))
    assert read_file(file, reading()) == []


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("a.jsonl.gz", gzipped(LINES[0]) + b"\0" * 100_000),
        ("a.jsonl.gz", gzipped(LINES[0]) + b"\0" * 70_000 + gzipped(LINES[1])),
        ("a.jsonl.zst", SKIPPABLE + zstd(LINES[0]) + SKIPPABLE + zstd(LINES[1]) + SKIPPABLE),
    ],
)
def test_what_the_tools_accept_between_members(name: str, packed: bytes, tmp_path: Path) -> None:
    items = read_file(written(tmp_path / name, packed), reading())
    assert [value["text"] for value in values(items)] in (texts(LINES[:1]), texts(LINES[:2]))
    assert not damages(items)


@pytest.mark.parametrize(
    ("flags", "raw"),
    [
        ({"window_log": 27, "enable_ldm": True}, b'{"text":"a"}\n' * 9),
        ({"write_content_size": False}, b'{"text":"b"}\n' * 20_000),
        ({"compression_level": 19}, b'{"text":"' + bytes(range(97, 123)) * 20_000 + b'"}\n'),
        ({"compression_level": -5}, b'{"text":"c"}\n'),
    ],
)
def test_zstd_frames_of_every_sort(flags: dict[str, int], raw: bytes, tmp_path: Path) -> None:
    parameters = zstandard.ZstdCompressionParameters(**flags)
    maker = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = maker.compress(raw) + maker.flush()
    items = read_file(written(tmp_path / "a.jsonl.zst", packed), reading())
    assert len(values(items)) == raw.count(b"\n")
    assert not damages(items)


def _reason_of_cut(kind: str, length: int) -> str:
    """Python's gzip takes a single byte of a member for something else."""
    return "bad-archive" if (kind, length) == ("gz", 1) else "truncated"


@KINDS
def test_cut_anywhere_nothing_before_the_cut_is_lost(kind: str, tmp_path: Path) -> None:
    pack = PACKERS[kind]
    members = [pack(b"".join(LINES[:4])), pack(b"".join(LINES[4:]))]
    packed = b"".join(members)
    for cut in range(1, len(packed)):
        items = read_file(written(tmp_path / f"a.jsonl.{kind}", packed[:cut]), reading("jsonl"))
        whole = values(items)
        assert whole == [{"text": text} for text in texts(LINES)[: len(whole)]]
        assert cut < len(members[0]) or len(whole) >= 4
        if cut == len(members[0]):
            assert not damages(items)
            continue
        assert isinstance(items[-1], Damage)
        assert [item.reason for item in items if isinstance(item, Damage)] == [
            _reason_of_cut(kind, cut - len(members[0]) if cut > len(members[0]) else cut)
        ]
        end = sum(map(len, LINES[: len(whole)]))
        # An object is whole without its line feed.
        assert items[-1].offset in (end, end - 1)


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


@KINDS
def test_what_is_no_member_is_damage(kind: str, tmp_path: Path) -> None:
    for rubbish in (b"rubbish", b"\n", b"\x1f"):
        packed = PACKERS[kind](LINES[0]) + rubbish
        items = read_file(written(tmp_path / f"a.jsonl.{kind}", packed), reading())
        assert [value["text"] for value in values(items)] == texts(LINES[:1])
        assert damages(items)[0][:2] == (len(LINES[0]), 0)
        assert damages(items)[0][2] in ("bad-archive", "truncated")
        assert len(damages(items)) == 1


def test_gzip_yields_what_stands_before_a_bad_checksum(tmp_path: Path) -> None:
    packed = bytearray(gzipped(b"".join(LINES) + b'{"text":"no line feed"}'))
    packed[-6] ^= 1
    items = read_file(written(tmp_path / "a.jsonl.gz", bytes(packed)), reading())
    assert len(values(items)) == len(LINES) + 1
    assert damages(items) == [(sum(map(len, LINES)) + 23, 0, "bad-archive")]


def test_a_line_of_text_that_an_archive_cuts_is_damage(tmp_path: Path) -> None:
    packed = gzipped(b"one\ntwo")[:-8]
    items = read_file(written(tmp_path / "a.txt.gz", packed), reading())
    assert values(items) == [{"text": "one"}]
    assert damages(items) == [(4, 3, "truncated")]


ARRAY = b"[" + b",\n".join(line.strip() for line in LINES) + b"]\n"


@KINDS
@pytest.mark.parametrize("raw", [ARRAY, b'{"RECORDS": ' + ARRAY + b', "n": 1}'])
def test_arrays_in_archives(kind: str, raw: bytes, tmp_path: Path) -> None:
    pack = PACKERS[kind]
    for packed in (pack(raw), b"".join(pack(raw[at : at + 20]) for at in range(0, len(raw), 20))):
        file = written(tmp_path / f"part-1.json.{kind}", packed)
        items = read_file(file, reading())
        assert [value["text"] for value in values(items)] == texts(LINES)
        assert not damages(items)
        for item in items:
            assert raw[item.offset : item.offset + item.length] == item.raw


@KINDS
def test_arrays_in_archives_cut_anywhere(kind: str, tmp_path: Path) -> None:
    pack = PACKERS[kind]
    packed = pack(ARRAY[:100]) + pack(ARRAY[100:])
    ends = [ARRAY.index(line.strip()) + len(line) - 1 for line in LINES]
    for cut in range(1, len(packed)):
        file = written(tmp_path / f"part-1.json.{kind}", packed[:cut])
        items = read_file(file, reading("json"))
        whole = values(items)
        assert whole == [{"text": text} for text in texts(LINES)[: len(whole)]]
        if cut >= len(pack(ARRAY[:100])):
            assert len(whole) >= sum(end <= 100 for end in ends)
        (damage,) = (item for item in items if isinstance(item, Damage))
        first = len(pack(ARRAY[:100]))
        assert damage.reason == _reason_of_cut(kind, cut - first if cut > first else cut)


def test_an_array_whose_archive_has_a_bad_end_is_whole(tmp_path: Path) -> None:
    packed = gzipped(ARRAY)[:-1]
    items = read_file(written(tmp_path / "part-1.json.gz", packed), reading())
    assert len(values(items)) == len(LINES)
    assert damages(items) == [(len(ARRAY), 0, "truncated")]


@pytest.mark.parametrize("form", ["jsonl", "json"])
@KINDS
def test_a_bomb_takes_bounded_memory(kind: str, form: str, tmp_path: Path) -> None:
    # The smallest step of zstd may hold 64 MiB.
    size, bound = (192 << 20, 80 << 20) if kind == "zst" else (32 << 20, 8 << 20)
    before = b"[" if form == "json" else b""
    start, end = before + b'{"text":"', b'"}' + (b"]" if form == "json" else b"\n")
    file = written(tmp_path / f"a.{form}.{kind}", PACKERS[kind](start + b"x" * size + end))
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
)
@settings(max_examples=30, deadline=None)
def test_members_read_as_their_content(
    cuts: list[int], kind: str, lines: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    raw = "\n".join(lines).encode()
    folder = tmp_path_factory.mktemp("members")
    edges = [0, *sorted(cuts), len(raw) + 300]
    packed = b"".join(PACKERS[kind](raw[a:b]) for a, b in itertools.pairwise(edges))
    items = read_file(written(folder / f"a.txt.{kind}", packed), reading())
    plain = read_file(written(folder / "a.txt", raw), reading()) if raw else []
    assert items == plain
    assert all(isinstance(item, Record) for item in items)


@pytest.mark.parametrize(
    ("path", "kind"),
    [("a.gz", "gzip"), ("s3://b/a.json.zst", "zstd"), ("a.bz2", "bzip2"), ("a.gz.jsonl", None)],
)
def test_the_name_says_how_a_file_is_compressed(path: str, kind: str | None) -> None:
    assert compression(path) == kind


def test_is_compressed() -> None:
    assert is_compressed(SKIPPABLE, "zstd")
    assert is_compressed(b"\x1f\x8b\x08", "gzip")
    assert is_compressed(b"\x1f", "gzip")
    assert not is_compressed(b"[]", "gzip")


def test_a_real_archive() -> None:
    if not REAL.exists():
        pytest.skip(f"{REAL} is absent")
    file = input_file(REAL)
    items = read_file(file, reading())
    assert len(items) > 10
    assert not damages(items)
    assert all(set(value) == {"text", "meta"} for value in values(items))
