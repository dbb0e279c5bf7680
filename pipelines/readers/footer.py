"""Where the columns of a Parquet file begin, read from its footer without pyarrow.

pyarrow ends the interpreter when it is asked for a column whose footer is damaged in some ways. The
footer is Thrift's compact protocol (thrift-compact-protocol.md), a FileMetaData of parquet.thrift.
"""

from collections.abc import Iterator
from functools import lru_cache

_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(
    13
)
_FIXED = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8}
_ROW_GROUPS, _COLUMNS, _METADATA, _DATA_PAGE, _DICTIONARY_PAGE = 4, 1, 3, 9, 11


@lru_cache(maxsize=4)
def first_pages(footer: bytes) -> tuple[int, ...]:
    """Return the offset of the first page of each row group.

    Raises:
        ValueError: The footer is damaged.
    """
    reader = _Compact(footer)
    try:
        for field, kind in reader.fields():
            if (field, kind) == (_ROW_GROUPS, _LIST):
                return tuple(_first_page(reader) for _ in reader.structs())
            reader.skip(kind)
    except IndexError as error:
        raise ValueError("it ends too early") from error
    return ()


def _first_page(reader: "_Compact") -> int:
    """Return the offset of the first page of the row group at hand."""
    starts = []
    for field, kind in reader.fields():
        if (field, kind) == (_COLUMNS, _LIST):
            starts = [_column(reader) for _ in reader.structs()]
        else:
            reader.skip(kind)
    return min(starts, default=0)


def _column(reader: "_Compact") -> int:
    start = -1
    for field, kind in reader.fields():
        if (field, kind) == (_METADATA, _STRUCT):
            start = _first_of_column(reader)
        else:
            reader.skip(kind)
    if start < 0:
        raise ValueError("a column has no place")
    return start


def _first_of_column(reader: "_Compact") -> int:
    offsets = {_DATA_PAGE: -1, _DICTIONARY_PAGE: 0}
    for field, kind in reader.fields():
        if field in offsets and kind == _I64:
            offsets[field] = reader.integer()
        else:
            reader.skip(kind)
    page, dictionary = offsets[_DATA_PAGE], offsets[_DICTIONARY_PAGE]
    # Some writers put 0 if there is no dictionary.
    return min(page, dictionary) if dictionary else page


class _Compact:
    """Reads values one after the other; IndexError where the bytes end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and type of each field of a struct; its value has to be taken or skipped."""
        field = 0
        while kind := self._data[self._at] & 15:
            step = self._data[self._at] >> 4
            self._at += 1
            field = field + step if step else self.integer()
            yield field, kind
        self._at += 1

    def structs(self) -> Iterator[None]:
        """Stop at each element of a list of structs, which has to be taken."""
        count, kind = self._list()
        if kind != _STRUCT:
            raise ValueError("a list holds something else")
        for _ in range(count):
            yield

    def integer(self) -> int:
        """Return a signed integer."""
        value = self._varint()
        return value >> 1 ^ -(value & 1)

    def skip(self, kind: int) -> None:
        """Pass over a value."""
        if kind in _FIXED:
            self._at += _FIXED[kind]
        elif kind in (_I16, _I32, _I64):
            self._varint()
        elif kind == _BINARY:
            size = self._varint()
            self._at += size
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner)
        elif kind in (_LIST, _SET):
            count, inner = self._list()
            for _ in range(count):
                self.skip(_BYTE if inner in (_TRUE, _FALSE) else inner)
        else:
            raise ValueError(f"a value has the type {kind}")

    def _list(self) -> tuple[int, int]:
        head = self._data[self._at]
        self._at += 1
        return (head >> 4 if head < 0xF0 else self._varint()), head & 15  # noqa: PLR2004 - 15: the size follows

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._data[self._at]) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            self._at += 1
        self._at += 1
        return value | byte << shift
