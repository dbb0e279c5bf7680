"""Texts as sequences of hashed units, and hashes of n-grams of units, for whole batches.

A unit is a word, or one character of a script that is written without spaces. Case, punctuation,
symbols and white space are ignored; apostrophes, joiners and soft hyphens are removed from words;
full-width ASCII equals plain ASCII. The hash of a word (64 bits) is a polynomial of its characters,
and the hash of an n-gram is a polynomial of its units. Both are computed from prefix sums, without
a loop over words or n-grams.

    text      Don't panic，不要恐慌
    units     dont  panic  不  要  恐  慌
"""

import functools
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

BATCH_CHARACTERS = 1 << 18
"""The maximum number of characters of a batch, so that the arrays stay in the cache."""

GAP, WORD, SINGLE, NOTHING = 0, 1, 2, 3
"""Kinds of characters: between units, part of a word, a unit alone, and ignored in a word."""
_CODES = 0x32000
"""The first code point after all letters; it and higher code points separate words."""
_NO_SPACES = (
    (0x0E00, 0x0F00),  # Thai, Lao
    (0x0F00, 0x10A0),  # Tibetan, Burmese
    (0x1780, 0x1800),  # Khmer
    (0x3005, 0x3008), (0x3040, 0x3100), (0x31F0, 0x3200),  # Japanese
    (0x3400, 0xA000), (0xF900, 0xFB00), (0xFF66, 0xFFA0), (0x1B000, 0x1B170), (0x20000, _CODES),
)  # fmt: skip
_LEFT_OUT = "'’ʼ＇\u00ad\u200b\u200c\u200d\u2060\ufeff"

BASE = 0x9E3779B97F4A7C15
"""The base of the polynomials."""
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


@dataclass(frozen=True)
class Units:
    """The units of some texts, one text after another."""

    hashes: np.ndarray
    """uint64[units]."""
    single: np.ndarray
    """bool[units]: whether a unit is a character of a script without spaces."""
    ends: np.ndarray
    """int64[texts], the number of units up to the end of each text."""

    @functools.cached_property
    def _sums(self) -> np.ndarray:
        return _sums(self.hashes)

    def ngrams(self, length: int) -> np.ndarray:
        """Return the hash (uint64) of each n-gram of `length` units, as if all texts were one.

        The hash depends on the units only, not on their position.
        """
        count = max(0, len(self.hashes) - length + 1)
        sums, (_, inverses) = self._sums, _powers(len(self.hashes))
        differences = sums[length:] - sums[:count] if count else sums[:0]
        hashes: np.ndarray = differences * inverses[:count]
        return hashes

    def ngrams_at(self, places: np.ndarray, length: int) -> np.ndarray:
        """Return the hash (uint64) of the n-gram of `length` units that begins at each place."""
        _, inverses = _powers(len(self.hashes))
        hashes: np.ndarray = (self._sums[places + length] - self._sums[places]) * inverses[places]
        return hashes


def unit_batches(texts: Sequence[str]) -> Iterator[Units]:
    """Yield the units of all texts, a batch of texts at a time, in order."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and size + len(text) > BATCH_CHARACTERS:
            yield units(batch)
            batch, size = [], 0
        batch.append(text)
        size += len(text) + 1
    if batch:
        yield units(batch)


def units(texts: Sequence[str]) -> Units:
    """Return the units of a few texts; for many texts use `unit_batches`."""
    raw = "\n".join(texts).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(raw, np.uint32)
    kinds, values = character_tables()
    kind, ends = kinds.take(codes, mode="clip"), np.cumsum([len(text) + 1 for text in texts])
    kept = kind != NOTHING
    if not kept.all():
        ends -= np.searchsorted(np.flatnonzero(~kept), ends)
        codes, kind = codes[kept], kind[kept]
    word, single = kind == WORD, kind == SINGLE
    starts = single | word
    starts[1:] &= single[1:] | ~word[:-1]
    places = np.flatnonzero(starts)
    _, inverses = _powers(len(codes))
    edges = _sums(values.take(codes, mode="clip"))[np.append(places, len(codes))]
    hashes = _mixed((edges[1:] - edges[:-1]) * inverses[places])
    return Units(hashes, single[places], np.searchsorted(places, ends))


def _sums(values: np.ndarray) -> np.ndarray:
    """Return uint64[n + 1]: the sums of values before each place, weighted by powers of BASE."""
    powers, _ = _powers(len(values))
    sums = np.zeros(len(values) + 1, np.uint64)
    np.cumsum(values * powers[: len(values)], out=sums[1:])
    return sums


def _powers(count: int) -> tuple[np.ndarray, np.ndarray]:
    return _all_powers(1 << max(count, BATCH_CHARACTERS).bit_length())


@functools.lru_cache(maxsize=2)
def _all_powers(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `count` powers of BASE and of its inverse, modulo 2**64."""
    one = np.array([1], np.uint64)
    bases = (np.uint64(BASE), np.uint64(pow(BASE, -1, 1 << 64)))
    powers = [np.cumprod(np.append(one, np.full(count - 1, base))) for base in bases]
    return powers[0], powers[1]


@functools.lru_cache(maxsize=1)
def character_tables() -> tuple[np.ndarray, np.ndarray]:
    """Return the kinds (uint8) and the values (uint64, 0 for separators) of code points.

    Higher code points are treated as the last one, a separator.
    """
    kinds = np.zeros(_CODES, np.uint8)
    folded = np.arange(_CODES, dtype=np.uint64)
    for code in range(_CODES - 1):
        plain = chr(code - 0xFEE0 if 0xFF01 <= code <= 0xFF5E else code)  # noqa: PLR2004 - full-width ASCII
        if unicodedata.category(plain)[0] in "LMN":
            kinds[code] = WORD
        folded[code] = ord(plain.lower()[0])
    for start, end in _NO_SPACES:
        kinds[start:end][kinds[start:end] == WORD] = SINGLE
    kinds[[ord(character) for character in _LEFT_OUT]] = NOTHING
    values = _mixed(folded + np.uint64(1))
    values[(kinds == GAP) | (kinds == NOTHING)] = 0
    return kinds, values


def _mixed(values: np.ndarray) -> np.ndarray:
    """Apply the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) to each value."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(_MIX[0])
    values = (values ^ (values >> np.uint64(27))) * np.uint64(_MIX[1])
    mixed: np.ndarray = values ^ (values >> np.uint64(31))
    return mixed
