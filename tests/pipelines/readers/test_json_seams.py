"""Random arrays, cut and split at every byte, against Python's own json."""

import dataclasses
import itertools
import json
import math
import os
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipelines.inputs.split import Split, seamless
from pipelines.readers.json_array import JsonArrayReader
from pipelines.readers.record import Damage, Record
from pipelines.readers.salvage import UNUSABLE
from tests.pipelines.readers.readings import Items, damages, input_file, values

SEEDS = range(int(os.environ.get("SEAM_SEED", "0")), int(os.environ.get("SEAM_SEEDS", "12")))
MOST_BYTES = int(os.environ.get("SEAM_BYTES", "300"))

PIECES = [
    "好", "😀", "a b", "\\\\", '\\"', "},{", "[{", "}]", "]}", ",", ":", "{", "}", "[", "]", "\\n",
    '\\"content\\":\\"', '[{\\"content\\":', "\\ud83d\\ude00", "\\u0000", "\\u0007", "RECORDS",
]  # fmt: skip
ODD = [
    '"\\ud800"', '"\\udc00\\ud800x"', "1e400", "-1e400", "9" * 400, "NaN", "-Infinity",
    "0." + "1" * 400, '"\\u00001"', "1E-999", "-0", "18446744073709551616",
]  # fmt: skip
KEYS = ["content", "title", "RECORDS", "n", "", "\\u0063ontent", "a\\ud800", '\\"', "好"]


class Author:
    """Writes valid JSON at random."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._odd = self._draw.choice((0.0, 0.05, 0.3))
        self._blanks = self._draw.choice(([""], ["", " "], ["", "\n  ", "\t\r\n", " "]))

    def chance(self, share: float) -> bool:
        return self._draw.random() < share

    def blank(self) -> str:
        return self._draw.choice(self._blanks)

    def string(self) -> str:
        return '"' + "".join(self._draw.choices(PIECES, k=self._draw.randrange(5))) + '"'

    def value(self, depth: int = 0) -> str:
        kind = self._draw.randrange(5 if depth > 2 else 8)
        if self.chance(self._odd):
            return self._draw.choice(ODD)
        if kind == 7:
            return self.array([self.record() for _ in range(self._draw.randrange(4))])
        if kind == 6:
            return self.array([self.value(depth + 1) for _ in range(self._draw.randrange(3))])
        if kind == 5:
            return self.object(depth + 1)
        return self._draw.choice([self.string(), self.string(), "1.5e3", "true", "null", "-17"])

    def array(self, elements: Sequence[str]) -> str:
        comma = self.blank() + "," + self.blank()
        return "[" + self.blank() + comma.join(elements) + self.blank() + "]"

    def member(self, key: str, value: str) -> str:
        return f'"{key}"{self.blank()}:{self.blank()}{value}'

    def object(self, depth: int = 0, *first: str) -> str:
        others = [
            self.member(self._draw.choice(KEYS), self.value(depth))
            for _ in range(self._draw.randrange(4))
        ]
        comma = self.blank() + "," + self.blank()
        return "{" + self.blank() + comma.join([*first, *others]) + self.blank() + "}"

    def record(self) -> str:
        if self.chance(0.2):
            return self.object(2)
        return self.object(2, self.member("content", self.string()))

    def file(self) -> tuple[bytes, list[str]]:
        """Return a file of at most MOST_BYTES and the records in it."""
        while len((found := self._file())[0]) > MOST_BYTES:
            pass
        return found

    def _file(self) -> tuple[bytes, list[str]]:
        records = [self.record_of_a_file() for _ in range(self._draw.randrange(1, 6))]
        mark = "\ufeff" if self.chance(0.2) else ""
        array = self.array(records)
        if self.chance(0.4):
            return (mark + self.blank() + array + self.blank()).encode(), records
        others = [key for key in KEYS if key != "RECORDS"]
        before, after = (
            [
                self.member(self._draw.choice(others), self.value())
                for _ in range(self._draw.randrange(3))
            ]
            for _ in range(2)
        )
        after += [self.member("RECORDS", array)] * self.chance(0.2)
        records = records * (1 + ("RECORDS" in after[-1][:9] if after else 0))
        comma = self.blank() + "," + self.blank()
        members = comma.join([*before, self.member("RECORDS", array), *after])
        text = mark + "{" + self.blank() + members + self.blank() + "}" + self.blank()
        return text.encode(), records

    def record_of_a_file(self) -> str:
        imitation = self.array([self.record() for _ in range(self._draw.randrange(5))])
        if self.chance(0.3):
            return self.object(0, self.member("content", imitation), self.member("n", "1"))
        return self.object() if self.chance(0.3) else self.record()


def plain(value: Any) -> Any:
    """Return a value as both parsers have it."""
    if isinstance(value, dict):
        return {re.sub("[\ud800-\udfff]", "\ufffd", key): plain(v) for key, v in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if value is UNUSABLE or (isinstance(value, str) and re.search("[\ud800-\udfff]", value)):
        return "unusable"
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return float(str(value))
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def run(splits: Sequence[Split]) -> Items:
    """Return what a run finds in a file: if its splits do not join, it is read as one."""
    readers = [JsonArrayReader(split, text_fields=("content",)) for split in splits]
    items = [[comparable(item) for item in reader] for reader in readers]
    if seamless([reader.link for reader in readers if reader.link]):
        return list(itertools.chain.from_iterable(items))
    return run([whole(splits)])


def comparable(item: Record | Damage) -> Record | Damage:
    return item if isinstance(item, Damage) else item._replace(value=plain(item.value))


def whole(splits: Sequence[Split]) -> Split:
    return dataclasses.replace(splits[0], end=splits[-1].end)


def cut(file: Split, edges: Sequence[int]) -> list[Split]:
    pairs = itertools.pairwise([0, *edges, file.file_bytes])
    return [dataclasses.replace(file, start=start, end=end) for start, end in pairs]


def split_of(path: Path, raw: bytes) -> Split:
    path.write_bytes(raw)
    file = dataclasses.asdict(input_file(path))
    size = file.pop("bytes")
    return Split(**file, file_bytes=size, start=0, end=size)


@pytest.mark.parametrize("seed", SEEDS)
def test_wherever_a_file_is_split_its_records_are_those_of_json(seed: int, tmp_path: Path) -> None:
    raw, records = Author(seed).file()
    json.loads(raw)
    file = split_of(tmp_path / "a.json", raw)
    items = run([file])
    assert values(items) == [plain(json.loads(record)) for record in records]
    assert not damages(items)
    for item in items:
        assert isinstance(item, Record)
        assert raw[item.offset : item.offset + item.length] == item.raw
    for edge in range(1, len(raw)):
        assert run(cut(file, [edge])) == items, edge
    for size in (1, 2, 3, 7, 50):
        assert run(cut(file, range(size, len(raw), size))) == items, size


@pytest.mark.parametrize("seed", SEEDS)
def test_wherever_a_file_ends_its_whole_records_are_read(seed: int, tmp_path: Path) -> None:
    raw, _ = Author(seed).file()
    draw = random.Random(seed)
    complete = run([split_of(tmp_path / "a.json", raw)])
    begin = complete[0].offset
    for end in range(max(begin, 2), len(raw)):
        file = split_of(tmp_path / "a.json", raw[:end])
        items = run([file])
        kept = [item for item in items if isinstance(item, Record)]
        assert kept == [item for item in complete if item.offset + item.length <= end]
        assert [item for item in items if isinstance(item, Damage)] == items[len(kept) :]
        assert len(items) - len(kept) <= 1, end
        edges = sorted({draw.randrange(1, end) for _ in range(draw.randrange(1, 9))})
        assert run(cut(file, edges)) == items, (end, edges)
