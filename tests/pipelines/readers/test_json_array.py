import dataclasses
import gzip
import itertools
import json
import random
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.inputs.files import match_inputs
from pipelines.inputs.split import Link, Split, seamless, split_file
from pipelines.readers.file_head import HEAD_BYTES
from pipelines.readers.json_array import TAIL, JsonArrayReader, array_start, check_array
from pipelines.readers.json_scan import ScanWindow, parse_object
from pipelines.readers.record import RAW_BYTES, Damage, Record
from shards.errors import UserError

FIELDS = ("content", "title")


@dataclasses.dataclass
class ReadResult:
    elements: list[Record | Damage]
    link: Link

    @property
    def values(self) -> list[Any]:
        return [element.value for element in self.elements if isinstance(element, Record)]

    @property
    def damages(self) -> list[tuple[int, int, str]]:
        return [
            (element.offset, element.length, element.reason)
            for element in self.elements
            if isinstance(element, Damage)
        ]


def splits_of(raw: bytes, folder: Path, split_bytes: int) -> list[Split]:
    path = folder / "part-1.json"
    path.write_bytes(raw)
    (file,) = match_inputs([str(path)], pattern="*", default_name="wudao")
    return split_file(file, split_bytes)


def read_split(split: Split, raw: bytes, **options: Any) -> ReadResult:
    reader = JsonArrayReader(split, text_fields=FIELDS, **options)
    elements = list(reader)
    assert reader.crc32c == google_crc32c.value(raw[split.start : split.end])
    assert reader.link is not None
    return ReadResult(elements, reader.link)


def read_whole(raw: bytes, folder: Path, **options: Any) -> ReadResult:
    (split,) = splits_of(raw, folder, len(raw))
    reading = read_split(split, raw, **options)
    assert reading.link.next == len(raw)
    return reading


def read_in_splits(
    raw: bytes, folder: Path, split_bytes: int, **options: Any
) -> tuple[list[Record | Damage], bool]:
    """Return the elements that a run finds, and whether the splits were seamless."""
    readings = [read_split(split, raw, **options) for split in splits_of(raw, folder, split_bytes)]
    if seamless([reading.link for reading in readings]):
        return list(itertools.chain(*(reading.elements for reading in readings))), True
    return read_whole(raw, folder, **options).elements, False


# Layouts of an array file.

RECORDS: list[dict[str, Any]] = [
    {"id": index, "title": f"第{index}篇", "content": f"{'好' * index} {index}", "n": [1.5, None]}
    for index in range(6)
]


def compact(records: Sequence[Any]) -> bytes:
    return json.dumps(records, ensure_ascii=False, separators=(",", ":")).encode()


def indented(records: Sequence[Any]) -> bytes:
    return json.dumps(records, ensure_ascii=False, indent=4).encode()


def escaped(records: Sequence[Any]) -> bytes:
    return json.dumps(records).encode()


def wrapped(records: Sequence[Any]) -> bytes:
    return b'\n{"RECORDS" : ' + compact(records) + b"}\n"


def wrapped_with_fields(records: Sequence[Any]) -> bytes:
    head = b'\xef\xbb\xbf {"name": "a\\"[{", "n": -1.5, "x": null,"RECORDS":'
    return head + indented(records) + b', "total": 3 }'


LAYOUTS = [compact, indented, escaped, wrapped, wrapped_with_fields]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])
def test_reads_every_layout(layout: Any, block_bytes: int, tmp_path: Path) -> None:
    raw = layout(RECORDS)
    reading = read_whole(raw, tmp_path, block_bytes=block_bytes)
    assert reading.values == RECORDS
    for element in reading.elements:
        assert isinstance(element, Record)
        assert json.loads(raw[element.offset : element.offset + element.length]) == element.value


@pytest.mark.parametrize(
    "raw", [b"[]", b" [ \n ] \n", b'{"RECORDS":[]}', b'\xef\xbb\xbf{"RECORDS":[ ] }']
)
@pytest.mark.parametrize("split_bytes", [1, 100])
def test_empty_array(raw: bytes, split_bytes: int, tmp_path: Path) -> None:
    assert read_in_splits(raw, tmp_path, split_bytes) == ([], True)


def test_every_split_size_of_clean_records_is_seamless(tmp_path: Path) -> None:
    raw = indented(RECORDS)
    whole = read_whole(raw, tmp_path).elements
    for split_bytes in range(1, len(raw) + 1, 7):
        assert read_in_splits(raw, tmp_path, split_bytes) == (whole, True)


def test_split_within_one_record_finds_nothing(tmp_path: Path) -> None:
    raw = compact([{"content": "x" * 1000}, {"content": "y"}])
    readings = [read_split(split, raw) for split in splits_of(raw, tmp_path, 200)]
    assert [reading.link.first for reading in readings] == [1, None, None, None, 1016]
    assert [len(reading.elements) for reading in readings] == [1, 0, 0, 0, 1]
    assert seamless([reading.link for reading in readings])


def test_lost_and_doubled_commas_cost_nothing(tmp_path: Path) -> None:
    raw = b'[{"content":"a"} {"content":"b"},,{"content":"c"},]'
    whole = read_whole(raw, tmp_path)
    assert [value["content"] for value in whole.values] == ["a", "b", "c"]
    assert not whole.damages
    for split_bytes in range(1, len(raw)):
        assert read_in_splits(raw, tmp_path, split_bytes)[0] == whole.elements


# Damage: what stands in the middle, its reason, and how much of it is lost.

BEFORE, AFTER = {"content": "before"}, {"content": "after"}
DAMAGED = [
    (b'{"content": "a\xff"}', "bad-utf8"),
    (b'{"content": "\xe4\xb8"}', "bad-utf8"),
    (b'{"content": "a", "n": 01}', "bad-json"),
    (b'{"content": "a", "n": nan}', "bad-json"),
    (b'{"content": "a", "n": +1e999}', "bad-json"),
    (b'{"content": bare words}', "bad-json"),
    (b'{"content": "a" "title": "b"}', "bad-json"),
    (b'{"content": "a",}', "bad-json"),
    (b"{'content': 'a'}", "bad-json"),
    (b'{"content": "\\ud80"}', "bad-json"),
    (b'{"content": "\\ud800", "n": 01}', "bad-json"),
    (b'{"content": "raw \x01"}', "bad-json"),
    (b'{"content": "raw \n newline"}', "bad-json"),
    (b'{"content": "lost quote}', "bad-json"),
    (b'{"content": lost quote"}', "bad-json"),
    (b'{"content": "lost brace"', "bad-json"),
    (b'{"content": "a", "n": [1}', "bad-json"),
    (b'{"content": "a "quoted" word, and {more}"}', "bad-json"),
    (b'{"content": "a"} rest', "bad-json"),
    (b'{"content": "cut off in the mid', "bad-json"),
    (b'{"content": "cut off behind an escape \\', "bad-json"),
    (b'{"a":' * 1500 + b"1" + b"}" * 1499, "bad-json"),
    (b"}", "bad-json"),
    (b"rubbish", "bad-json"),
    (b"\0\0\0\0", "bad-json"),
    (b"17", "not-an-object"),
    (b"-1.5e3", "not-an-object"),
    (b'"a, ] string"', "not-an-object"),
    (b"null", "not-an-object"),
    (b"true", "not-an-object"),
    (b"[1, [2, {}], 3]", "not-an-object"),
]


@pytest.mark.parametrize(("damaged", "reason"), DAMAGED)
@pytest.mark.parametrize("separator", [b",", b" ,\n    "])
def test_damage_costs_that_record_only(
    damaged: bytes, reason: str, separator: bytes, tmp_path: Path
) -> None:
    before, after = compact([BEFORE])[1:-1], compact([AFTER])[1:-1]
    raw = b"[" + separator.join([before, damaged, after, before]) + b"]"
    whole = read_whole(raw, tmp_path)
    assert whole.values == [BEFORE, AFTER, BEFORE]
    start = 1 + len(before + separator)
    assert whole.damages == [(start, len(damaged), reason)]
    assert isinstance(whole.elements[1], Damage)
    assert whole.elements[1].raw == damaged
    for split_bytes in (1, 5, 17, 40):
        assert read_in_splits(raw, tmp_path, split_bytes) == (whole.elements, True)


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (b'{"content": "a\xff", "list": [{"content": "no"}, {"content": "no"}]}', "bad-utf8"),
        (b'{"list": [{"content": "no"}, {"content": "no"}], "n": 01}', "bad-json"),
        (b'{"list": [{"content": "no"}, [{"content": "\\x", "n": [{"content": 1}]}]]}', "bad-json"),
    ],
)
def test_what_a_damaged_record_encloses_is_none(
    damaged: bytes, reason: str, tmp_path: Path
) -> None:
    before, after = compact([BEFORE])[1:-1], compact([AFTER])[1:-1]
    raw = b"[" + b",\n".join([before, damaged, after, before]) + b"]"
    whole = read_whole(raw, tmp_path)
    assert whole.values == [BEFORE, AFTER, BEFORE]
    assert whole.damages == [(len(before) + 3, len(damaged), reason)]
    for split_bytes in range(1, len(raw), 9):
        assert read_in_splits(raw, tmp_path, split_bytes)[0] == whole.elements


@pytest.mark.parametrize(
    "wound",
    [b'{"list": [{"content": "no"}], "n": "lost quote}', b'{"list": [{"content": "no"}], "n": 1'],
)
def test_behind_a_wound_records_are_found_again(wound: bytes, tmp_path: Path) -> None:
    """What stands before the wound may be taken for records: better than to lose those behind."""
    after = compact([AFTER])[1:-1]
    raw = b"[" + b",".join([wound, after, after]) + b"]"
    assert read_whole(raw, tmp_path).values[-2:] == [AFTER, AFTER]


def test_a_damaged_record_at_the_end_keeps_the_array_closed(tmp_path: Path) -> None:
    reading = read_whole(b'[{"content":"a"},{"content": 01}]', tmp_path)
    assert reading.damages == [(17, 15, "bad-json")]


def test_records_without_text_are_records(tmp_path: Path) -> None:
    raw = compact([{"id": 1}, {}, AFTER, {"id": 2}, {}])
    for split_bytes in range(1, len(raw)):
        elements, is_seamless = read_in_splits(raw, tmp_path, split_bytes)
        assert [element.value for element in elements if isinstance(element, Record)] == [
            {"id": 1}, {}, AFTER, {"id": 2}, {},
        ]  # fmt: skip
        assert is_seamless


def test_a_file_cut_anywhere_loses_one_record(tmp_path: Path) -> None:
    records = RECORDS[2:5]
    raw = compact(records)
    ends = [element.offset + element.length for element in read_whole(raw, tmp_path).elements]
    for cut in range(1, len(raw)):
        reading = read_whole(raw[:cut], tmp_path)
        whole_records = sum(end <= cut for end in ends)
        assert reading.values == records[:whole_records]
        begun = (ends[whole_records - 1] if whole_records else 0) + 1
        if begun >= cut:
            assert reading.damages == [(cut, 0, "unterminated-array")]
        else:
            assert reading.damages == [(begun, cut - begun, "truncated")]
        assert read_in_splits(raw[:cut], tmp_path, 37) == (reading.elements, True)


@pytest.mark.parametrize(
    ("tail", "values", "length"),
    [
        (b" x", 0, 1),
        (b"\0\0\0", 0, 3),
        (b'\n[{"content":"second"}]', 1, 1),
        (b'\n{"RECORDS":[{"content":"second"}]}', 1, 12),
        (b'{"content":"second"}', 0, 20),
        (b",\n\n", 0, 3),
    ],
)
def test_what_follows_the_array_is_damage(
    tail: bytes, values: int, length: int, tmp_path: Path
) -> None:
    raw = compact(RECORDS) + tail
    whole = read_whole(raw, tmp_path)
    assert whole.values == RECORDS + [{"content": "second"}] * values
    start = len(raw) - len(tail.lstrip())
    assert whole.damages == [(start, length, "trailing-bytes")]
    for split_bytes in (1, 9, 50):
        assert read_in_splits(raw, tmp_path, split_bytes) == (whole.elements, True)


MEMBERS = [
    b'"more":[{"content":"no"},{"content":"record"}]',
    b'"more": {"a": [{"content":"no"}, {"b":[{"content":"record"}]}]}',
    b'"more":[[{"content":"no"}]] , "n": 1,"s":"],[{\\"content\\":\\"no\\"}",\n"z":{}',
    b'"n": 3, "s": "' + b"long " * 30_000 + b'", "more":[{"content":"no"}]',
]


@pytest.mark.parametrize("members", MEMBERS, ids=range(len(MEMBERS)))
def test_other_members_of_the_object_hold_no_records(members: bytes, tmp_path: Path) -> None:
    for tail, damage in ((b"}", []), (b"}\n", []), (b"} x", [1])):
        raw = b'{"before":[{"content":"no"}],"RECORDS":' + compact(RECORDS) + b"," + members + tail
        whole = read_whole(raw, tmp_path, block_bytes=100)
        assert whole.values == RECORDS
        assert [length for _, length, _ in whole.damages] == damage
        for split_bytes in (40, 200, 100_000):
            assert read_in_splits(raw, tmp_path, split_bytes)[0] == whole.elements


def test_members_that_end_too_early_are_cut_off(tmp_path: Path) -> None:
    records = b'{"RECORDS":' + compact(RECORDS)
    for members in MEMBERS[:3]:
        for length in range(len(members)):
            raw = records + b"," + members[:length]
            whole = read_whole(raw, tmp_path)
            assert whole.values == RECORDS
            assert [at + size for at, size, _ in whole.damages] in ([], [len(raw)])


def test_broken_members_are_damage_up_to_the_next_record(tmp_path: Path) -> None:
    raw = b'{"RECORDS":[{"content":"a"}],"more":[1}, [{"content":"b"}]'
    whole = read_whole(raw, tmp_path)
    assert whole.values == [{"content": "a"}, {"content": "b"}]
    assert whole.damages == [(28, 14, "trailing-bytes")]


def test_every_array_of_that_name_is_read(tmp_path: Path) -> None:
    raw = b'{"RECORDS":[{"content":"a"}],"more":[{"content":"no"}],"RECORDS":[{"content":"b"},{}]}'
    whole = read_whole(raw, tmp_path)
    assert whole.values == [{"content": "a"}, {"content": "b"}, {}]
    assert not whole.damages
    for split_bytes in range(1, len(raw)):
        assert read_in_splits(raw, tmp_path, split_bytes)[0] == whole.elements


def test_members_behind_a_bare_array_are_damage(tmp_path: Path) -> None:
    raw = b'[{"content":"a"}],"more":[{"content":"b"}]}'
    whole = read_whole(raw, tmp_path)
    assert whole.values == [{"content": "a"}, {"content": "b"}]
    assert whole.damages[0] == (17, 9, "trailing-bytes")


def test_damage_keeps_its_first_bytes(tmp_path: Path) -> None:
    raw = b'[{"content":"' + b"\xff" * (RAW_BYTES + 10) + b'"},{"content":"a"}]'
    damage = read_whole(raw, tmp_path).elements[0]
    assert isinstance(damage, Damage)
    assert damage.raw == raw[1 : 1 + RAW_BYTES]
    assert damage.length == RAW_BYTES + 24


# Long records and hostile ones.


def test_too_long_record_is_passed_over(tmp_path: Path) -> None:
    raw = compact(
        [BEFORE, {"content": "长" * 500, "n": [{"a": 1}] * 50}, AFTER, {"title": "x" * 999}]
    )
    whole = read_whole(raw, tmp_path, max_record_bytes=1000, block_bytes=64)
    assert whole.values == [BEFORE, AFTER]
    second = raw.index(b'{"content":"\xe9')
    assert whole.damages[0] == (second, raw.index(b',{"content":"after"') - second, "too-long")
    assert whole.damages[1][2] == "too-long"
    for split_bytes in (10, 100, 900):
        options = {"max_record_bytes": 1000, "block_bytes": 64}
        assert read_in_splits(raw, tmp_path, split_bytes, **options) == (whole.elements, True)


@pytest.mark.parametrize("records", [[{"content": "x"}], [{"content": "x"}, {"content": "y"}]])
def test_the_longest_record_allowed(records: list[Any], tmp_path: Path) -> None:
    raw = compact(records)
    assert read_whole(raw, tmp_path, max_record_bytes=15).values == records
    assert not read_whole(raw, tmp_path, max_record_bytes=14).values


def test_memory_is_bounded_by_block_and_longest_record(tmp_path: Path) -> None:
    long = b'{"content":"' + b"x" * (24 << 20) + b'"}'
    raw = b"[" + b",".join([compact([BEFORE])[1:-1], long, compact([AFTER])[1:-1]]) + b"]"
    (split,) = splits_of(raw, tmp_path, len(raw))
    reader = JsonArrayReader(
        split, text_fields=FIELDS, max_record_bytes=1 << 20, block_bytes=1 << 18
    )
    tracemalloc.start()
    try:
        elements = list(reader)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [type(element) for element in elements] == [Record, Damage, Record]
    assert peak < 8 << 20


@pytest.mark.parametrize(
    "content",
    [
        "},{" * 20_000,
        '"},{"content":"' * 4_000,
        '\\"},\\\\{"' * 6_000,
        '"}]' * 9_000,
        "{[" * 20_000,
    ],
)
def test_imitations_inside_a_string_are_text(content: str, tmp_path: Path) -> None:
    records = [{"content": content, "n": index} for index in range(3)]
    for layout in LAYOUTS:
        raw = layout(records)
        assert read_in_splits(raw, tmp_path, 20_000)[0] == read_whole(raw, tmp_path).elements
        assert read_whole(raw, tmp_path).values == records


@pytest.mark.parametrize("unit", [b'{"a":[', b',{"a":[[[[[[[[', b',{"a":"x', b',{"', b',{"a":"'])
def test_hostile_damage_takes_linear_work(
    unit: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One unit makes every brace look like a record that ends far away or nowhere."""
    looked = []

    def parse(window: ScanWindow, offset: int, *, max_bytes: int) -> Any:
        value, reached = parse_object(window, offset, max_bytes=max_bytes)
        looked.append(reached - offset)
        return value, reached

    monkeypatch.setattr("pipelines.readers.json_array._FREE_QUOTES", 1 << 10)
    monkeypatch.setattr("pipelines.readers.json_array.parse_object", parse)
    records = RECORDS * 50
    raw = b"[" + unit * (200_000 // len(unit)) + b"," + compact(records)[1:]
    reading = read_whole(raw, tmp_path)
    assert [damage[0] for damage in reading.damages] == [raw.index(b"{")]
    assert 0 < len(reading.values) <= len(records)
    assert reading.values == records[-len(reading.values) :]
    assert sum(looked) < 20 * len(raw)


# Properties.

PUNCTUATION = st.text(alphabet='{}[],:"\\ \nab好\u2028', max_size=8)
LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | PUNCTUATION
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS) | PUNCTUATION, inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from(FIELDS) | PUNCTUATION, VALUES, max_size=4)
IMITATION = st.lists(st.fixed_dictionaries({"content": PUNCTUATION}), min_size=1, max_size=6)
RECORD = (
    OBJECTS
    | st.fixed_dictionaries({"content": PUNCTUATION})
    | st.fixed_dictionaries({"content": PUNCTUATION, "list": IMITATION})
)


@given(
    records=st.lists(RECORD, max_size=6),
    layout=st.sampled_from(LAYOUTS),
    split_bytes=st.integers(1, 120),
    block_bytes=st.integers(1, 200),
)
@settings(max_examples=60, deadline=None)
def test_splits_read_what_json_reads(
    records: list[Any],
    layout: Any,
    split_bytes: int,
    block_bytes: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    raw = layout(records)
    folder = tmp_path_factory.mktemp("property")
    elements, _ = read_in_splits(raw, folder, split_bytes, block_bytes=block_bytes)
    offsets = [element.offset for element in elements]
    assert offsets == sorted(set(offsets))
    assert [element.value for element in elements if isinstance(element, Record)] == records
    assert len(elements) == len(records)
    for element in elements:
        assert isinstance(element, Record)
        text = raw[element.offset : element.offset + element.length]
        assert json.loads(text) == element.value


def test_nested_imitation_breaks_the_seams_and_is_read_again(tmp_path: Path) -> None:
    records = [BEFORE, {"content": "a", "list": [{"content": "b" * 40}] * 9}, AFTER]
    raw = compact(records)
    elements, is_seamless = read_in_splits(raw, tmp_path, 100)
    assert not is_seamless
    assert [element.value for element in elements if isinstance(element, Record)] == records


WOUNDS: list[Any] = [
    lambda text, _: text[: len(text) // 2],
    lambda text, _: text.replace(b'"', b"", 1),
    lambda text, _: text[:-2] + text[-1:],
    lambda text, draw: _overwritten(text, draw.randrange(len(text)), b"\xff"),
    lambda text, draw: _overwritten(text, draw.randrange(len(text)), b"\x00"),
    lambda text, _: text.replace(b":", b": 01, ", 1),
    lambda _, draw: draw.choice([b"1", b'"x"', b"null", b"[]", b"rubbish"]),
]


def _overwritten(text: bytes, at: int, byte: bytes) -> bytes:
    return text[:at] + byte + text[at + 1 :]


@given(
    contents=st.lists(PUNCTUATION, min_size=3, max_size=7),
    wound=st.sampled_from(WOUNDS),
    seed=st.integers(0, 99),
    split_bytes=st.integers(1, 90),
    separator=st.sampled_from([b",", b",\n  ", b" , "]),
)
@settings(max_examples=100, deadline=None)
def test_one_wound_costs_one_record(
    contents: list[str],
    wound: Any,
    seed: int,
    split_bytes: int,
    separator: bytes,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    draw = random.Random(seed)
    records = [{"id": index, "content": text} for index, text in enumerate(contents)]
    texts = [compact([record])[1:-1] for record in records]
    hit = draw.randrange(len(texts) - 1)
    texts[hit] = wound(texts[hit], draw)
    raw = b"[" + separator.join(texts) + b"]"
    folder = tmp_path_factory.mktemp("wound")
    whole = read_whole(raw, folder)
    assert read_in_splits(raw, folder, split_bytes)[0] == whole.elements
    ids = [value.get("id") for value in whole.values]
    expected = [index for index in range(len(records)) if index != hit]
    assert [index for index in ids if index in expected] == expected
    assert whole.damages
    assert sum(length for _, length, _ in whole.damages) <= len(texts[hit]) + len(separator)


# Heads of files.


@pytest.mark.parametrize(
    "raw",
    [
        b"[]",
        b" \n[ ]",
        b'[{"id":1}]',
        b"[{}]",
        b"\xef\xbb\xbf[\r\n  {",
        b'{"RECORDS":[]}',
        b'{ "RECORDS" : [ {"id":1',
        b'{"a": "\\"RECORDS\\": [", "b": -1.5e3, "c": null, "RECORDS": [{"id":1}]}',
        b'{"meta": {"n": [1, "]}"]}, "RECORDS": [{"id": 1}]}',
        b'[null, 3, {"id": 1}]',
        b'[rubbish, {"id": 1}]',
        b'[{"content": "a\xff"}]',
    ],
)
def test_arrays_of_objects_pass(raw: bytes) -> None:
    check_array(raw, "part-1.json")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (gzip.compress(b"[]", mtime=0), r"it is a gzip archive, so unpack it first"),
        (b"Rar!\x1a\x07\x01\x00", r"it is a rar archive"),
        (b"\x28\xb5\x2f\xfd\x00", r"it is a zstd archive"),
        ("[]".encode("utf-16"), r"it is UTF-16, so convert it to UTF-8"),
        (b'{"id": 1}\n{"id": 2}\n', r"it has one object per line \(JSON lines\)"),
        (b'{"id": 1}', r"an object without the key \"RECORDS\" near its start: '\{\"id\": 1\}'"),
        (b'{"records": [{"id": 1}]}', r"without the key \"RECORDS\""),
        (b'{"meta": {"RECORDS": [{"id": 1}]}}', r"without the key \"RECORDS\""),
        (b'{"a": {"n": 1]}, "RECORDS": [{"id": 1}]}', r"without the key \"RECORDS\""),
        (b"plain text", r"it begins with 'plain text'\. Expected was \[\{\.\.\.\}, \.\.\.\] or"),
        (b" " * 70_000 + b"[]", r"it begins with ' +'"),
        (b"[1,2,3]", r"but not of objects: its first element begins with '1,2,3\]'"),
        (b'["a","b"]', r"its first element begins with '\"a\",\"b\"\]'"),
        (b"[[1]]", r"its first element begins with '\[1\]\]'"),
    ],
)
def test_other_files_are_refused_by_name(raw: bytes, message: str) -> None:
    with pytest.raises(UserError, match=rf"The input .*part-1\.json .*{message}"):
        check_array(raw[:HEAD_BYTES], "data/part-1.json")


@pytest.mark.parametrize(
    ("head", "start"),
    [(b"[{", 1), (b"x[", None), (b"\xef\xbb\xbf [", 5), (b'{"a":1,"RECORDS":[{', 18)],
)
def test_array_start(head: bytes, start: int | None) -> None:
    assert array_start(head) == start


@pytest.mark.parametrize(
    ("tail", "length"),
    [
        (b"]", 1),
        (b"]\n", 2),
        (b"]}", 2),
        (b'] , "total": 3, "name": "x]}" }', 31),
        (b'],{"id":1}]', 1),
        (b'], "list": []}', 1),
    ],
)
def test_tail(tail: bytes, length: int) -> None:
    match = TAIL.match(tail)
    assert match
    assert match.end() == length


# Refusals.


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    (split,) = splits_of(compact(RECORDS), tmp_path, 10**6)
    Path(split.path).write_bytes(b"[]")
    with pytest.raises(UserError, match=r"part-1.json has 2 bytes and had \d+ when the run began"):
        list(JsonArrayReader(split, text_fields=FIELDS))


def test_no_array_is_refused(tmp_path: Path) -> None:
    (split,) = splits_of(b'{"id": 1}\n{"id": 2}\n', tmp_path, 10**6)
    with pytest.raises(UserError, match=r"part-1.json holds no JSON array.*JSON lines"):
        list(JsonArrayReader(split, text_fields=FIELDS))
