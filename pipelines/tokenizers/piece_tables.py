"""Makes the tables of a SentencePiece model of type BPE for the kernels.

BPE only joins neighbours. So if two characters are not adjacent in any piece, nothing is joined
across them, and the ids of a text are the ids of its parts, one after another:

    text     The cat  sat。好的，好的
    read     _The_cat_sat.好的,好的        a space in front, and one for any run of white space
    parts    _The|_cat|_sat|.|好的|,|好的

The library first normalises a text (google/sentencepiece, src/normalizer.cc). It removes extra
white space and replaces single characters; the kernels do both while they read. The library also
replaces some characters together with the next one. A character that follows another in such a rule
reads as `ODD`, and the library encodes texts with such characters.

A *symbol* is a member of a pair: the id of a piece, or a number above all ids for a character that
is user-defined, or that occurs in pieces without being a piece.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from pipelines.tokenizers.piece_kernels import (
    FACTOR,
    FREE,
    ID_BITS,
    NONE,
    ODD,
    RANK_BITS,
    SPACE,
    UNKNOWN,
    PieceTables,
)
from pipelines.tokenizers.sentencepiece_model import SPACE_SYMBOL, SplittableModel

_SPACE_SYMBOL = ord(SPACE_SYMBOL)
_CODES = 0x110000
_SURROGATES = slice(0xD800, 0xE000)
_HASH_BITS = 20
# Odd numbers that distribute code points (primes of xxHash).
_LEFT, _RIGHT = 0x85EBCA77, 0xC2B2AE3D

_Array = npt.NDArray[np.int64]


def piece_tables(model: SplittableModel) -> PieceTables:
    """Return the tables of a model, which take 20 MB.

    Raises:
        ValueError: The model has too many pieces.
    """
    symbols, emitted = _symbols(model)
    by_rank, pairs, shift = _pairs(model, symbols)
    replaced = {**model.character_rules.single, **{ord(own): own for own in model.symbols}}
    reading, first, last = _readings(model, replaced)
    # In the library's table of rules, NUL ends a replacement.
    reading[[0, *model.character_rules.joining]] = ODD
    reading[_SURROGATES] = ODD
    if model.byte_fallback:
        reading[[ord(c) for c, symbol in symbols.items() if emitted[symbol] == model.unknown]] = ODD
    lefts, rights = _neighbours(model)
    joinable = np.zeros(1 << _HASH_BITS, np.bool_)
    joinable[_mixed(lefts, _LEFT) ^ _mixed(rights, _RIGHT)] = True
    by_code, starts, expansions = _expanded(symbols, replaced, reading)
    columns = (reading, _mixed(last, _LEFT), _mixed(first, _RIGHT), by_code)
    return PieceTables(
        characters=np.stack(columns, axis=1, dtype=np.int32, casting="same_kind"),
        joinable=np.packbits(joinable, bitorder="little"),
        expansion_starts=starts,
        expansions=expansions,
        pairs=pairs,
        pair_shift=shift,
        by_rank=by_rank,
        emitted=emitted,
        unknown=model.unknown,
        remove_extra_whitespaces=model.remove_extra_whitespaces,
        byte_fallback=model.byte_fallback,
    )


def _symbols(model: SplittableModel) -> tuple[dict[str, int], npt.NDArray[np.int32]]:
    """Return the symbol of each character that has one, and the id of each symbol."""
    own = {piece.text: piece.id for piece in model.pieces if len(piece.text) == 1}
    inner = set("".join(piece.text for piece in model.pieces)) - own.keys()
    count = max(piece.id for piece in model.pieces) + 1
    symbols = dict(own)
    emitted = [*range(count)]
    for character in (*sorted(inner - model.symbols.keys()), *model.symbols):
        symbols[character] = len(emitted)
        emitted.append(model.symbols.get(character, model.unknown))
    symbols[" "] = symbols.get(SPACE_SYMBOL, UNKNOWN)
    return symbols, np.array(emitted, np.int32)


def _pairs(
    model: SplittableModel, symbols: Mapping[str, int]
) -> tuple[npt.NDArray[np.int32], _Array, np.uint64]:
    """Return the pieces by rank, the hash table of pairs with ranks, and the shift of hashes."""
    ids = {**symbols, **{piece.text: piece.id for piece in model.pieces}}
    for character in model.symbols:
        del ids[character]  # it is never joined
    joined = sorted(
        (piece for piece in model.pieces if len(piece.text) > 1), key=lambda piece: -piece.score
    )
    texts = [piece.text for piece in joined]
    ranked = [
        (ids[text[:cut]] << ID_BITS | ids[text[cut:]], rank)
        for rank, text in enumerate(texts)
        for cut in range(1, len(text))
        if text[:cut] in ids and text[cut:] in ids
    ]
    if max(len(joined), len(symbols) + len(ids)) >= min(1 << ID_BITS, NONE):
        raise ValueError(f"there are {len(ids)} pieces, too many for a table of pairs")
    keys, ranks = np.array(ranked, np.int64).reshape(-1, 2).T
    bits = max(4, (2 * len(keys)).bit_length())
    shift = np.uint64(64 - bits)
    table = np.full(1 << bits, FREE, np.int64)
    homes = ((keys.astype(np.uint64) * np.uint64(FACTOR)) >> shift).astype(np.int64)
    entries = keys << RANK_BITS | ranks
    while len(entries):
        free = table[homes] == FREE
        # If several entries have the same place, the last one is stored.
        table[homes[free]] = entries[free]
        waiting = table[homes] != entries
        entries, homes = entries[waiting], (homes[waiting] + 1) & (len(table) - 1)
    return np.array([piece.id for piece in joined], np.int32), table, shift


def _neighbours(model: SplittableModel) -> tuple[_Array, _Array]:
    """Return the left and the right code point of each pair of neighbours in pieces."""
    joined = model.separator.join(piece.text for piece in model.pieces).encode("utf-32-le")
    codes = np.frombuffer(joined, np.uint32).astype(np.int64)
    apart = codes == ord(model.separator)
    inside = ~(apart[:-1] | apart[1:])
    return codes[:-1][inside], codes[1:][inside]


def _readings(model: SplittableModel, replaced: Mapping[int, str]) -> tuple[_Array, _Array, _Array]:
    """Return how each code point is read, and the first and last characters of its replacement."""
    joining = model.character_rules.joining
    reading, first, last = (np.arange(_CODES) for _ in range(3))
    if model.remove_extra_whitespaces:
        # The library would remove this symbol at the end of a text, like a space.
        reading[_SPACE_SYMBOL] = ODD
    for code, text in replaced.items():
        if text == " ":
            reading[code] = SPACE
        elif not text or (model.remove_extra_whitespaces and (" " in text or SPACE_SYMBOL in text)):
            reading[code] = ODD
        elif len(text) == 1 and ord(text) not in replaced and ord(text) not in joining:
            reading[code] = ord(text)
        else:
            first[code], last[code] = ord(text[0]), ord(text[-1])
    first[first == SPACE] = _SPACE_SYMBOL
    last[last == SPACE] = _SPACE_SYMBOL
    return reading, first, last


def _expanded(
    symbols: Mapping[str, int], replaced: Mapping[int, str], reading: _Array
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the symbol of each code point, and the replacements by several symbols.

    A symbol of -2 - i is the i-th replacement. The second array shows where each replacement begins
    in the third array, and where the last one ends.
    """
    by_code = np.full(_CODES, UNKNOWN, np.int32)
    for character, symbol in symbols.items():
        by_code[ord(character)] = symbol
    starts, expansions = [0], []
    for code, text in replaced.items():
        if reading[code] == code and text != " ":
            by_code[code] = -1 - len(starts)
            expansions += [symbols.get(character, UNKNOWN) for character in text]
            starts.append(len(expansions))
    return by_code, np.array(starts, np.int32), np.array(expansions or [UNKNOWN], np.int32)


def _mixed(codes: _Array, factor: int) -> npt.NDArray[np.int32]:
    return (codes * factor % (1 << 32) >> (32 - _HASH_BITS)).astype(np.int32)
