"""Random files of records in every format, and the expected result of each record.

Guarantee: Of a damaged record, row or line only the damaged part is lost, and its position and
bytes are kept.
"""

import bz2
import io
import json
import lzma
import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from tests.golden.corpora import compressed
from tests.soak.records import Corpus, RecordResult, Value, make_invalid, quarantined
from tests.soak.texts import Text, Texts

BOM = b"\xef\xbb\xbf"
ODD = (
    *(b"1e400", b"-1e999", b"NaN", b"-Infinity", b"9" * 400, b'"\\ud800 half"'),
    *(b'[1e400, {"a": NaN}]', b"[" * 600 + b"]" * 600),
)
"""Invalid values, which do no harm in a field that is not used."""
COMPRESSIONS = ("", "", "", ".gz", ".zst", ".bz2", ".xz")


@dataclass(frozen=True)
class Row:
    """A record of a file, and the result that is expected of it."""

    position: int
    """The position in the record's identity: a byte offset in the uncompressed file, or a table
    row."""
    result: RecordResult


@dataclass(frozen=True)
class FileContent:
    """The bytes of a file, and the records in them."""

    data: bytes
    rows: tuple[Row, ...]


@dataclass
class FileWriter:
    """Writes random files of a source."""

    rng: random.Random
    texts: Texts
    corpus: Corpus
    damage: float
    """The share of invalid records."""
    options: dict[str, object]
    """The corpus options that decide the results of records."""
    number: int = 0

    def file(self, form: str, records: int, packed: str) -> FileContent:
        """Return a file with a number of records in a format, compressed as its ending says."""
        make = {
            **{"jsonl": self._lines, "lines": self._plain, "objects": self._objects},
            **{"parquet": self._table, "arrow": self._table},
        }
        content = make.get(form, self._array)(records, form, cut=not packed)
        if not packed:
            return content
        data = _pack(self.rng, content.data, packed)
        if form == "jsonl" and records > 3 and self.rng.random() < self.damage:
            return self._cut_archive(content, data, packed)
        return FileContent(data, content.rows)

    def _value(self, *, first: bool) -> tuple[Value, RecordResult]:
        value, text = self.corpus.make(self.rng, self.texts, self.number)
        self.number += 1
        if not first and self.rng.random() < self.damage / 2:
            value = make_invalid(self.rng, value, self.corpus.field)
            value.pop("odd", None)  # otherwise the odd value would be the reason
        return value, self._judged(value, text)

    def _judged(self, value: Value, text: Text) -> RecordResult:
        result = self.corpus.expected_result(value, self.options, text.family)
        whole = [document.prompt + document.text for document in result.documents]
        return quarantined("nul") if any("\0" in text for text in whole) else result

    def _dumps(self, value: Value, indent: int | None = None) -> bytes:
        ascii_only = self.rng.random() < 0.3
        line = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
        return line.replace(b'"@ODD@"', self.rng.choice(ODD)) if "odd" in value else line

    # --- one object per line

    def _lines(self, records: int, form: str, *, cut: bool) -> FileContent:
        del form
        rng = self.rng
        data = bytearray(BOM if rng.random() < 0.15 else b"")
        end = rng.choice((b"\n", b"\n", b"\r\n"))
        rows = []
        for number in range(records):
            if rng.random() < 0.03:
                data += rng.choice((b"\n", b"  \n", b"\r\n"))
            if number and rng.random() < self.damage:
                line, result = self._bad_line()
            else:
                value, result = self._value(first=not number)
                line = self._dumps(value)
            rows.append(Row(len(data), result))
            data += line + end
        if cut and rows and rng.random() < 0.2:
            del data[-len(end) :]
        if cut and records > 1 and rng.random() < self.damage:
            rows.append(Row(len(data) + (not data.endswith(b"\n")), quarantined("bad-json")))
            data += b"" if data.endswith(b"\n") else b"\n"
            data += b'{"text": "this file ends inside a reco'
        return FileContent(bytes(data), tuple(rows))

    def _bad_line(self) -> tuple[bytes, RecordResult]:
        field = self.corpus.field.encode()
        return self.rng.choice(
            (
                (b'{"text": "no end', quarantined("bad-json")),
                (b'{"text": "a" "b"}', quarantined("bad-json")),
                (b'{"%b": "\\ud800 alone"}' % field, quarantined("bad-json")),
                (b'{"text": "\xff\xfe no UTF-8"}', quarantined("bad-utf8")),
                (b"[1, 2, 3]", quarantined("not-an-object")),
                (b'"a string"', quarantined("not-an-object")),
                (b"nonsense", quarantined("bad-json")),
            )
        )

    # --- one text per line

    def _plain(self, records: int, form: str, *, cut: bool) -> FileContent:
        del form, cut
        rng = self.rng
        data = bytearray(BOM if rng.random() < 0.15 else b"")
        rows = []
        for number in range(records):
            text = self.texts.next()
            line = " ".join(text.text.split("\n")).replace("\r", " ").replace("\0", " ")
            if number and rng.random() < self.damage:
                rows.append(Row(len(data), quarantined("bad-utf8")))
                data += b"bytes \xff\xfe of no text\n"
                continue
            if line.strip():
                result = self.corpus.expected_result({"text": line}, self.options, text.family)
                rows.append(Row(len(data), result))
            data += line.encode() + rng.choice((b"\n", b"\n", b"\r\n"))
        return FileContent(bytes(data), tuple(rows))

    # --- objects over several lines

    def _objects(self, records: int, form: str, *, cut: bool) -> FileContent:
        del form
        data = bytearray(BOM if self.rng.random() < 0.15 else b"")
        rows = []
        for number in range(records):
            value, result = self._value(first=not number)
            rows.append(Row(len(data), result))
            data += self._dumps(value, self.rng.choice((1, 2))) + self.rng.choice((b"\n", b"\n\n"))
        if cut and records > 1 and self.rng.random() < self.damage:
            rows.append(Row(len(data), quarantined("truncated")))
            data += b'{\n "%b": "this file ends inside a reco' % self.corpus.field.encode()
        return FileContent(bytes(data), tuple(rows))

    # --- an array

    def _array(self, records: int, form: str, *, cut: bool) -> FileContent:
        rng = self.rng
        head, tail = (b"[", b"]")
        if form == "RECORDS":
            head, tail = rng.choice(
                (
                    (b'{"RECORDS": [', b"]}"),
                    (b'{"count": 3, "name": "x", "RECORDS":[', b'], "more": "y" }\n'),
                )
            )
        data = bytearray((BOM if rng.random() < 0.15 else b"") + head)
        separator = rng.choice((b",", b", ", b",\n", b"\n , \n"))
        indent = rng.choice((None, None, 1, 2))
        rows: list[Row] = []
        for number in range(records):
            data += separator if number else rng.choice((b"", b"\n", b"  "))
            # Invalid JSON extends up to the next valid object.
            broken = bool(rows) and rows[-1].result.quarantined == "bad-json"
            if 0 < number < records - 1 and not broken and rng.random() < self.damage:
                element, result = self._bad_element()
            else:
                value, result = self._value(first=not number or broken)
                element = self._dumps(value, indent)
            rows.append(Row(len(data), result))
            data += element
        if form == "RECORDS" or not cut or rng.random() >= self.damage or not records:
            return FileContent(bytes(data + tail), tuple(rows))
        return self._bad_end(data, separator, rows)

    def _bad_element(self) -> tuple[bytes, RecordResult]:
        field = self.corpus.field.encode()
        return self.rng.choice(
            (
                (b"5", quarantined("not-an-object")),
                (b'"a string, {}"', quarantined("not-an-object")),
                (b"null", quarantined("not-an-object")),
                (b"[1, 2, [3]]", quarantined("not-an-object")),
                (b'{"%b": "a" "b"}' % field, quarantined("bad-json")),
                (b'{"%b": "\xff\xfe no UTF-8"}' % field, quarantined("bad-utf8")),
            )
        )

    def _bad_end(self, data: bytearray, separator: bytes, rows: list[Row]) -> FileContent:
        ways = ["trailing", "cut", "unterminated"]
        if rows[-1].result.quarantined in ("bad-json", "bad-utf8", "not-an-object"):
            ways.pop()  # this would merge with the invalid element before it
        way = self.rng.choice(ways)
        if way == "cut":
            data += separator
            rows.append(Row(len(data), quarantined("truncated")))
            data += b'{"%b": "this file ends inside a reco' % self.corpus.field.encode()
        elif way == "trailing":
            data += b"]\n"
            rows.append(Row(len(data), quarantined("trailing-bytes")))
            data += b"and some more"
        else:
            rows.append(Row(len(data), quarantined("unterminated-array")))
        return FileContent(bytes(data), tuple(rows))

    # --- a table

    def _table(self, records: int, form: str, *, cut: bool) -> FileContent:
        del cut
        rng = self.rng
        values, rows = [], []
        binary = rng.random() < 0.3
        for number in range(records):
            value, text = self.corpus.make(rng, self.texts, self.number)
            self.number += 1
            cell: object = value[self.corpus.field]
            result = self._judged(value, text)
            if number and rng.random() < self.damage:
                cell, result = rng.choice(
                    (
                        (None, quarantined("missing-field")),
                        (f"a\0{cell}", quarantined("nul")),
                        *([(b"\xff\xfe no UTF-8", quarantined("bad-utf8"))] if binary else []),
                    )
                )
            if binary and isinstance(cell, str):
                cell = cell.encode()
            values.append({**value, self.corpus.field: cell})
            rows.append(Row(number, result))
        names = (
            [name for name in values[0] if name not in ("nested", "more", "odd")] if values else []
        )
        if "text" not in names:
            names.append("text")
        columns = {name: [value.get(name) for value in values] for name in names}
        text_type = pa.binary() if binary else rng.choice((pa.string(), pa.large_string()))
        arrays = {
            name: pa.array(cells, text_type if name == self.corpus.field else None)
            for name, cells in columns.items()
        }
        sink = io.BytesIO()
        if form == "arrow":
            new = rng.choice((pa.ipc.new_stream, pa.ipc.new_file))
            with new(sink, pa.table(arrays).schema) as writer:
                writer.write_table(pa.table(arrays), max_chunksize=rng.choice((1, 5, 1000)))
            return FileContent(sink.getvalue(), tuple(rows))
        pq.write_table(
            pa.table(arrays),
            sink,
            row_group_size=rng.choice((1, 5, 20, 1000)),
            compression=rng.choice(("none", "snappy", "zstd", "gzip")),
            use_dictionary=rng.random() < 0.5,
        )
        return FileContent(sink.getvalue(), tuple(rows))

    # --- a truncated archive

    def _cut_archive(self, content: FileContent, data: bytes, packed: str) -> FileContent:
        """Return a truncated archive, with only the records that are still readable."""
        data = data[: self.rng.randrange(max(20, len(data) // 2), len(data))]
        left = _unpacked(data, packed)
        if left is None or left == content.data:
            return FileContent(_pack(self.rng, content.data, packed), content.rows)
        start = left.rfind(b"\n") + 1
        if not start and left.startswith(BOM):
            start = len(BOM)
        rows = [row for row in content.rows if row.position < start]
        rest = left[start:]
        try:
            whole = isinstance(json.loads(rest), dict)
        except ValueError:
            whole = False
        if whole:
            rows.append(next(row for row in content.rows if row.position == start))
        at = len(left) if whole or not rest.strip() else start
        return FileContent(data, (*rows, Row(at, quarantined("truncated"))))


def _pack(rng: random.Random, data: bytes, packed: str) -> bytes:
    """Return data as an archive, which sometimes has several members."""
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.choice((0, 0, 1, 3))))
    return b"".join(
        compressed(data[start:end], packed) for start, end in pairwise([0, *cuts, len(data)])
    )


_UNPACKERS: dict[str, Callable[[], Any]] = {
    ".gz": lambda: zlib.decompressobj(wbits=31),
    ".zst": lambda: zstandard.ZstdDecompressor().decompressobj(),
    ".bz2": bz2.BZ2Decompressor,
    ".xz": lzma.LZMADecompressor,
}


def _unpacked(data: bytes, packed: str) -> bytes | None:
    """Return the readable part of a truncated archive; None if all members are complete."""
    whole = b""
    while data:
        unpacker = _UNPACKERS[packed]()
        whole += unpacker.decompress(data)
        if not unpacker.eof:
            return whole
        data = unpacker.unused_data
    return None


def endings(form: str) -> Sequence[str]:
    """Return the file name endings of a format."""
    return {
        "jsonl": (".jsonl", ".ndjson"),
        "lines": (".txt",),
        "parquet": (".parquet",),
        "arrow": (".arrow",),
    }.get(form, (".json",))
