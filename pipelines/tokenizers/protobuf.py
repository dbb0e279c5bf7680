"""Protocol buffers on the wire, as far as SentencePiece's model files need them."""

from collections.abc import Iterator

# Wire types.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def fields(message: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, start and end of the value of each field of a serialized message.

    Raises:
        ValueError, IndexError: the bytes are no such message.
    """
    position = start
    while position < end:
        key, position = varint(message, position)
        wire = key & 7
        if wire == _VARINT:
            after = varint(message, position)[1]
        elif wire == _BYTES:
            length, position = varint(message, position)
            after = position + length
        elif wire in (_FIXED32, _FIXED64):
            after = position + (4 if wire == _FIXED32 else 8)
        else:
            raise ValueError(f"it has a field of type {wire}")
        if after > end:
            raise ValueError("it ends in the middle of a field")
        yield key >> 3, position, after
        position = after


def varint(message: bytes, position: int) -> tuple[int, int]:
    """Return a number and where it ends: 7 bits a byte, the lowest first."""
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004  the top bit says that more follows
            return value, position


def field(number: int, value: int | bytes) -> bytes:
    """Return a field on the wire: a number that is not negative, or bytes."""
    if isinstance(value, int):
        return _varint_bytes(number << 3 | _VARINT) + _varint_bytes(value)
    return _varint_bytes(number << 3 | _BYTES) + _varint_bytes(len(value)) + value


def _varint_bytes(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:  # noqa: PLR2004  seven bits a byte
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
