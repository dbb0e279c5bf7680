"""Bytes of a file as a bad disk, a cut copy or somebody hostile may leave them."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from shards.storage.files import canonical
from tests.shards.json_mutations import mutated as changed
from tests.shards.json_mutations import text_of

_NUMBERS = (0, 1, 7, 255, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, -1)
"""What a length, an offset or a count is overwritten with."""

_EDGE_BYTES = 1024
"""Headers and footers are this close to the ends of a file: half of all mutations go there."""

Random = np.random.Generator


def mutated(content: bytes, *, kind: str, others: Sequence[bytes], rng: Random) -> bytes:
    """Return the content of a file after one mutation.

    Args:
        content: What is in it.
        kind: One of KINDS.
        others: What other files hold, one of which may take its place.
        rng: Decides everything else.
    """
    if kind == "swapped":
        return others[rng.integers(len(others))]
    if kind == "grown" or not content:
        return content + rng.bytes(int(rng.integers(1, 64)))
    data = bytearray(content)
    _CHANGES[kind](data, rng)
    return bytes(data)


def _cut(data: bytearray, rng: Random) -> None:
    del data[int(rng.integers(len(data))) :]


def _flip_bits(data: bytearray, rng: Random) -> None:
    for _ in range(int(rng.integers(1, 4))):
        data[_place(len(data), rng)] ^= 1 << int(rng.integers(8))


def _put_number(data: bytearray, rng: Random) -> None:
    size = (4, 8)[rng.integers(2)]
    number = _NUMBERS[rng.integers(len(_NUMBERS))] % 2 ** (8 * size)
    at = _place(len(data), rng) // 4 * 4
    data[at : at + size] = number.to_bytes(size, "little")[: len(data) - at]


def _move(data: bytearray, rng: Random) -> None:
    at, size = _run(data, rng)
    start = _place(len(data) - size + 1, rng)
    data[at : at + size] = data[start : start + size]


def _fill(make: Callable[[int, Random], bytes]) -> Callable[[bytearray, Random], None]:
    def fill(data: bytearray, rng: Random) -> None:
        at, size = _run(data, rng)
        data[at : at + size] = make(size, rng)

    return fill


def _change_values(data: bytearray, rng: Random) -> None:
    """Change values somewhere in JSON, with the seal of a manifest; other files lose a byte."""
    try:
        value = changed(json.loads(data), int(rng.integers(2**31)))
    except ValueError:
        del data[_place(len(data), rng)]
        return
    if isinstance(value, dict) and "sha256" in value:
        del value["sha256"]
        with suppress(ValueError):
            value["sha256"] = hashlib.sha256(canonical(value)).hexdigest()
    data[:] = text_of(value).encode()


def _run(data: bytearray, rng: Random) -> tuple[int, int]:
    """Return where a short run of bytes begins, and its size."""
    at = _place(len(data), rng)
    return at, min(int(rng.integers(1, 65)), len(data) - at)


def _place(size: int, rng: Random) -> int:
    """Return a place below a size, half of them near one of the ends."""
    if size <= 2 * _EDGE_BYTES or rng.integers(2):
        return int(rng.integers(size))
    near = int(rng.integers(_EDGE_BYTES))
    return near if rng.integers(2) else size - 1 - near


_CHANGES: Mapping[str, Callable[[bytearray, Random], None]] = {
    "bits": _flip_bits,
    "number": _put_number,
    "zeros": _fill(lambda size, _: bytes(size)),
    "ones": _fill(lambda size, _: b"\xff" * size),
    "random": _fill(lambda size, rng: rng.bytes(size)),
    "moved": _move,
    "value": _change_values,
    "cut": _cut,
}

KINDS = (*_CHANGES, "bits", "number", "grown", "swapped")
"""What may happen to a file; what no comparison of sizes finds is here more often."""
