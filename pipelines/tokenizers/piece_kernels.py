"""SentencePiece's byte-pair encoding as kernels on the code points of texts."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipelines.compiled import kernel

SPACE = 0x20
ODD = -1
UNKNOWN = -1
ID_BITS, RANK_BITS = 20, 23
NONE = (1 << RANK_BITS) - 1
"""The rank of a pair that makes no piece."""
FREE = -1
FACTOR = 0x9E3779B185EBCA87
"""An odd number that distributes pairs over the table (a prime of xxHash)."""
MAX_PART = 256
"""The maximum number of symbols of a part; joining takes quadratic time."""
READING, LEFT, RIGHT, SYMBOL = range(4)
"""The columns of PieceTables.characters."""

_Ints = npt.NDArray[np.int32]


class PieceTables(NamedTuple):
    """A model's tables of characters and pairs of symbols, which piece_tables.py makes."""

    characters: _Ints
    """int32[code points, 4]: the normalised code point, or ODD; hashes of the last and of the first
    character that it is normalised to; its symbol, UNKNOWN, or -2 - i for expansion i."""
    joinable: npt.NDArray[np.uint8]
    """A bit per value of left XOR right: whether such code points may be adjacent in a piece."""
    expansion_starts: _Ints
    """Where each expansion begins, and where the last one ends."""
    expansions: _Ints
    """The symbols of characters that are normalised to several characters."""
    pairs: npt.NDArray[np.int64]
    """A hash table with open addressing, from pairs of symbols to the ranks of their pieces."""
    pair_shift: np.uint64
    by_rank: _Ints
    """The piece of each rank."""
    emitted: _Ints
    """The id of each symbol."""
    unknown: int
    remove_extra_whitespaces: bool
    byte_fallback: bool


@kernel
def encode_texts(  # noqa: PLR0913, PLR0917  texts, tables, memory
    points: npt.NDArray[np.uint32],
    ends: npt.NDArray[np.int64],
    tables: PieceTables,
    ids: _Ints,
    lengths: npt.NDArray[np.int64],
    starts: _Ints,
    ranks: _Ints,
) -> int:
    """Write the ids of all texts one after another, and the number of ids of each text.

    A text that only the library can encode gets the length -1 and no ids.

    Args:
        points: Code points of all texts.
        ends: Where each text ends in `points`.
        tables: The tables of the model.
        ids: Output: the ids; texts whose symbols do not fit are left to the library.
        lengths: Output: the numbers of ids; as long as `ends`.
        starts: Memory, with one element more than `ids`.
        ranks: Memory, with MAX_PART elements.

    Returns:
        The number of ids of all texts.
    """
    begin = used = 0
    for text in range(len(ends)):
        own = ids[used:]
        parts = _read(points[begin : ends[text]], tables, own, starts)
        lengths[text] = -1
        if parts >= 0:
            lengths[text] = _join(own, starts, parts, tables, ranks)
            used += lengths[text]
        begin = ends[text]
    return used


@kernel
def _read(  # noqa: C901, PLR0912, PLR0915  one pass over the text
    points: npt.NDArray[np.uint32], tables: PieceTables, symbols: _Ints, starts: _Ints
) -> int:
    """Write a text's symbols and where its parts start; return the number of parts, -1 if odd."""
    # Reading the tuple only once makes the loop several times as fast.
    characters, joinable, remove_extra_whitespaces = (
        tables.characters,
        tables.joinable,
        tables.remove_extra_whitespaces,
    )
    size = parts = place = 0
    before, spaced = -1, remove_extra_whitespaces or len(points) > 0
    while True:
        if spaced and not remove_extra_whitespaces:
            code, spaced = np.int32(SPACE), False
        elif place == len(points):
            break
        else:
            code = characters[points[place], READING]
            if code == ODD:
                return -1
            if remove_extra_whitespaces and code == SPACE:
                spaced = True
                place += 1
                continue
            if spaced:
                code, spaced = np.int32(SPACE), False
            else:
                place += 1
        right = characters[code, RIGHT]
        pair = before ^ right
        if before < 0 or not joinable[pair >> 3] >> (pair & 7) & 1:
            starts[parts] = size
            parts += 1
        before = characters[code, LEFT]
        symbol = characters[code, SYMBOL]
        first, last = np.int32(0), np.int32(1)
        if symbol < UNKNOWN:
            first, last = tables.expansion_starts[-2 - symbol], tables.expansion_starts[-1 - symbol]
        if size + last - first > min(len(symbols), starts[parts - 1] + MAX_PART):
            return -1
        for index in range(first, last):
            one = symbol if symbol >= UNKNOWN else tables.expansions[index]
            if one == UNKNOWN and tables.byte_fallback:
                return -1
            symbols[size] = one
            size += 1
    starts[parts] = size
    return parts


@kernel
def _join(  # noqa: C901  calls of functions with arrays cost more than the work
    symbols: _Ints, starts: _Ints, parts: int, tables: PieceTables, ranks: _Ints
) -> int:
    """Replace the symbols of a text by its ids, part by part, and return the number of ids.

    The best pair is joined first, and among equal pairs the leftmost one (google/sentencepiece,
    src/bpe_model.cc). Unknown characters in a row become one id.
    """
    pairs, shift, by_rank = tables.pairs, tables.pair_shift, tables.by_rank
    emitted, unknown = tables.emitted, tables.unknown
    used = 0
    for part in range(parts):
        first, size = starts[part], starts[part + 1] - starts[part]
        for index in range(size - 1):
            ranks[index] = _rank(symbols[first + index], symbols[first + index + 1], pairs, shift)
        while size > 1:
            best, place = np.int32(NONE), 0
            for index in range(size - 1):
                if ranks[index] < best:
                    best, place = ranks[index], index
            if best == NONE:
                break
            size -= 1
            at = first + place
            symbols[at] = by_rank[best]
            for index in range(place + 1, size):
                symbols[first + index] = symbols[first + index + 1]
                ranks[index - 1] = ranks[index]
            if place > 0:
                ranks[place - 1] = _rank(symbols[at - 1], symbols[at], pairs, shift)
            if place < size - 1:
                ranks[place] = _rank(symbols[at], symbols[at + 1], pairs, shift)
        for index in range(first, first + size):
            piece = unknown if symbols[index] == UNKNOWN else emitted[symbols[index]]
            if piece != unknown or used == 0 or symbols[used - 1] != piece:
                symbols[used] = piece
                used += 1
    return used


@kernel
def _rank(left: Any, right: Any, pairs: npt.NDArray[np.int64], shift: np.uint64) -> Any:
    """Return the rank of the piece that two symbols make; NONE if they make no piece."""
    if left < 0 or right < 0:
        return np.int32(NONE)
    pair = np.int64(left) << ID_BITS | np.int64(right)
    slot = np.int64((np.uint64(pair) * np.uint64(FACTOR)) >> shift)
    while pairs[slot] >> RANK_BITS != pair:
        if pairs[slot] == FREE:
            return np.int32(NONE)
        slot = (slot + 1) & (len(pairs) - 1)
    return np.int32(pairs[slot] & NONE)
