"""Reads files in a custom format: a function of the corpus turns a byte stream into records.

A file is one split. Records are numbered in the order in which the function yields them. The offset
of a record is its number and its length is 1, as for the rows of a table.
"""

import io
from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.read.reader import StreamReader
from pipelines.read.record import RAW_BYTES, WHOLE_BYTES, BrokenRecord, Damage, Record
from pipelines.read.stream import ByteStream, StreamFile, skip_rest
from shards.errors import UserError


class CustomReader(StreamReader):
    """Reads one file; a record whose texts and bytes together exceed the size limit is damage."""

    def _records(self, stream: ByteStream) -> Iterator[Record | Damage]:
        number = -1
        for number, item in enumerate(self._items(stream)):
            yield self._numbered(number, item)
        self.truncation = stream.failure
        if stream.failure:
            yield Damage(number + 1, 0, stream.failure, b"")

    def _items(self, stream: ByteStream) -> Iterator[Mapping[str, Any] | BrokenRecord]:
        assert self.input_format.read is not None
        source = StreamFile(stream)
        try:
            yield from self.input_format.read(io.BufferedReader(source, io.DEFAULT_BUFFER_SIZE))
            skip_rest(stream)
        except UserError as error:
            if source.error:  # The function may have handled or hidden the error.
                raise source.error from error
            raise UserError(f"The input {self.split.path}: {error}") from error

    def _numbered(self, number: int, item: Mapping[str, Any] | BrokenRecord) -> Record | Damage:
        if isinstance(item, BrokenRecord):
            return Damage(number, 1, item.reason, item.raw[:WHOLE_BYTES])
        values = [value for value in item.values() if isinstance(value, str | bytes)]
        # A rejected record keeps the beginning of its longest bytes value.
        raw = max((value for value in values if isinstance(value, bytes)), key=len, default=b"")
        size = sum(map(len, values))
        if size > self.input_format.max_record_bytes:
            return Damage(number, 1, "too-long", raw[:RAW_BYTES], size)
        return Record(number, 1, item, raw)
