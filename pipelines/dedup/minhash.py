"""MinHash signatures: 14 band hashes find near-duplicates, and 112 bytes estimate similarity.

Similarity is the Jaccard similarity of the sets of 5-grams. If at least a fifth of a text is in
scripts written without spaces (Chinese, Japanese, Thai, Lao, Burmese and Khmer), its units are its
characters except white space. The units of any other text are its words: the parts between ASCII
characters that are not letters or digits, with ASCII letters in lower case.

The method is one-permutation hashing (Li, Owen, Zhang, NeurIPS 2012): the hash of a gram gives one
of 112 slots and a value, and a slot keeps its smallest value. Empty slots copy from slots that have
values by optimal densification (Shrivastava, ICML 2017). Eight slots make a band, so two texts of
similarity s share a band with probability 1 - (1 - s**8)**14, as in FineWeb (Penedo et al., 2024).

A signature depends on its text alone, not on the texts signed together with it.
"""

from dataclasses import dataclass

import numpy as np

from pipelines.dedup import kernels
from pipelines.dedup.exact import FoldedTexts
from shards.sampling.permutation import mix

NUM_BANDS = 14
ROWS_PER_BAND = 8
NUM_SLOTS = NUM_BANDS * ROWS_PER_BAND

PIECE_CHARACTERS = 32_768
"""The maximum number of characters that are processed at once. A longer text is divided into
pieces; the few grams that span two pieces are left out."""

_U64 = np.uint64
# Odd numbers without structure: digits of pi, e, the golden ratio, the roots of 2, 3, 5 and 7.
_FACTORS = kernels.Factors(
    unit=_U64(0x243F6A8885A308D3),
    pair=_U64(0xB7E151628AED2A6B),
    quad=_U64(0x9E3779B97F4A7C15),
    last=_U64(0x6A09E667F3BCC909),
    mix=_U64(0xBB67AE8584CAA73B),
    piece=_U64(PIECE_CHARACTERS),
)
_BYTE = 0x3C6EF372FE94F82B
_SLOT_SALT = _U64(0xA54FF53A5F1D36F1)


@dataclass(frozen=True, slots=True)
class Signatures:
    """The signatures of n texts; rows of texts that are not signed are zero.

    `bands` is uint64[n, NUM_BANDS], `slots` uint8[n, NUM_SLOTS], `signed` bool[n].
    """

    bands: np.ndarray
    slots: np.ndarray
    signed: np.ndarray

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        """The arrays `bands`, `slots` and `signed`."""
        return self.bands, self.slots, self.signed


def similarity(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the estimated similarity (float64[n]) of rows of slots (uint8[n, NUM_SLOTS]).

    The bytes of slots with different values agree by chance once in 256 times. The estimate is
    corrected for this, so for unrelated texts it is zero on average and may be negative. The
    standard error is sqrt(s * (1 - s) / 112), which is 0.043 at a similarity of 0.7.
    """
    equal = np.count_nonzero(one == other, axis=1) / NUM_SLOTS
    estimate: np.ndarray = (equal - 1 / 256) / (1 - 1 / 256)
    return estimate


_WORD_BYTES = bytes(
    ord(chr(byte).lower()) if chr(byte).isalnum() else 32 for byte in range(128)
) + bytes(range(128, 256))
"""The byte that replaces each byte of a text: ASCII letters become lower case, digits and bytes of
non-ASCII characters stay, and any other byte becomes a space."""


def _lookup_tables(num_bytes: int) -> kernels.MinhashTables:
    """Return the lookup tables for pieces of at most this many bytes."""
    probes = _numbers(NUM_SLOTS * NUM_SLOTS, _SLOT_SALT).reshape(NUM_SLOTS, NUM_SLOTS)
    return kernels.MinhashTables(
        word_bytes=np.array([*_WORD_BYTES], np.uint8),
        powers=_powers(_BYTE, num_bytes + 1)[1:],
        inverses=_powers(pow(_BYTE, -1, 2**64), num_bytes),
        probes=np.argsort(probes, axis=1, kind="stable"),
        slot_factors=_numbers(NUM_SLOTS, _FACTORS.pair) | _U64(1),
        band_salts=_numbers(NUM_BANDS, _FACTORS.last),
    )


class MinHasher:
    """Computes the signatures of texts, in buffers that it reuses."""

    def __init__(self) -> None:
        """Make the lookup tables and the buffers."""
        capacity = 4 * PIECE_CHARACTERS  # bytes of UTF-8
        self._tables = _lookup_tables(capacity)
        self._scratch = kernels.MinhashScratch(
            sums=np.empty(capacity + 1, _U64),
            places=np.empty(capacity + 1, np.int64),
            units=np.empty(capacity + 1, _U64),
            least=np.empty(NUM_SLOTS, np.uint32),
        )

    def signatures(self, texts: FoldedTexts) -> Signatures:
        """Return the signatures of folded texts."""
        num = len(texts.ends)
        bands = np.zeros((num, NUM_BANDS), _U64)
        slots = np.zeros((num, NUM_SLOTS), np.uint8)
        signed = np.empty(num, bool)
        constant = self._tables, _FACTORS, self._scratch
        kernels.sign(texts.data, texts.ends, *constant, bands, slots, signed)
        return Signatures(bands, slots, signed)


def _powers(base: int, num: int) -> np.ndarray:
    """Return base**i mod 2**64 for i < num, uint64[num]."""
    factors = np.full(num, base % 2**64, _U64)
    factors[0] = 1
    return np.cumprod(factors, dtype=_U64)


def _numbers(num: int, salt: np.uint64) -> np.ndarray:
    """Return pseudo-random numbers, uint64[num], which are the same in every run."""
    return mix(np.arange(1, num + 1, dtype=_U64) * _FACTORS.quad + salt)
