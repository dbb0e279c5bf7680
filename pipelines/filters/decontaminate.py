"""Benchmarks in documents, found by the runs of words that both share.

The published rule is GPT-3's (Brown et al. 2020, arXiv 2005.14165, appendix C), which NeMo Curator
and Megatron-Turing NLG adopted: runs of 13 words, lower-case, without punctuation; shorter items
as a whole if they have at least 8 words. Here a document that holds a run is dropped as a whole: it
is one of a great many, and with a piece cut out it would be a text that nobody wrote. GPT-3 differs
in three ways: it cuts out 200 characters around the run instead, drops a document cut into more
than 10 pieces, and ignores runs that more than 10 documents hold, which takes a second pass.

For text without spaces no number of *characters* is as well established. Segmented by jieba, the
words of Chinese prose have 1.76 characters on average (105,296 words of technical and literary
text), so 13 words are 23 characters and 8 are 14. An item counts as Chinese (or Japanese, Thai,
...) if more than half of its units are such characters.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipelines.compiled import proven
from pipelines.filters.listing import read_whole
from pipelines.filters.units import (
    BASE,
    NOTHING,
    SINGLE,
    WORD,
    character_tables,
    unit_batches,
    units,
)
from pipelines.readers.reading import Reading
from pipelines.readers.record import Damage, Record, strings_in
from pipelines.segments.rows import utf8
from shards.errors import UserError

WORDS = 13
"""Words in a run (GPT-3, NeMo Curator; datatrove takes 12)."""
FEWEST_WORDS = 8
"""A shorter item is ignored: everyday phrases would drop everything (GPT-3's least N)."""
CHARACTERS_PER_WORD = 1.75


@dataclass(frozen=True, kw_only=True)
class Contamination:
    """The runs of some benchmarks."""

    runs: Mapping[int, np.ndarray]
    """Hashes (uint64, sorted, distinct) by the number of units in a run, ascending."""
    head: int
    """How many units a head has: the first ones of a run, no more than the shortest run has."""
    heads: np.ndarray
    """Hashes (uint64, sorted, distinct) of the heads of all runs."""
    items: int
    """How many items the files hold."""
    skipped: int
    """How many of them are too short to look for."""
    fingerprint: str
    """SHA-256 of the runs, in hexadecimal: the same for the same texts in any order."""

    def hits(self, texts: Sequence[str]) -> np.ndarray:
        """Return how many distinct runs of the benchmarks each text holds (int32[texts])."""
        filters = [(length, hashes, *_filter(hashes)) for length, hashes in self.runs.items()]
        counts = []
        for batch in unit_batches(texts):
            hits = []  # by length of runs, int64[hits, 2]: index of the text, hash of the run
            for length, hashes, table, shift in filters:
                runs = batch.runs(length)
                places = np.flatnonzero(table[(runs >> shift).view(np.int64)])
                places = places[_isin(runs[places], hashes)]
                text = np.searchsorted(batch.ends, places, side="right")
                inside = places + length <= batch.ends[text]
                pairs = np.stack([text, runs[places].view(np.int64)], 1)
                hits.append(np.unique(pairs[inside], axis=0))
            texts_hit = np.concatenate(hits)[:, 0] if hits else np.zeros(0, np.int64)
            counts.append(np.bincount(texts_hit, minlength=len(batch.ends)))
        return np.concatenate([np.zeros(0, np.int32), *counts]).astype(np.int32)


class Search:
    """Looks for the runs of benchmarks in columns of text."""

    def __init__(self, benchmarks: Contamination, *, compiled: bool = False) -> None:
        """Make a search.

        Args:
            benchmarks: What to look for.
            compiled: By a native loop, if it can be compiled and finds the same in a few texts.
        """
        self._benchmarks = benchmarks
        self._native = _native_search(benchmarks) if compiled else None

    def hits(self, texts: pa.Array) -> np.ndarray:
        """Return how many distinct runs of the benchmarks each text holds (int32[n]).

        Args:
            texts: A column of large_string without nulls.
        """
        if self._native:
            return self._native.hits(texts)
        return self._benchmarks.hits(texts.to_pylist())


_CHECK_TEXTS = (
    "Don't panic: the Ａｎｓｗｅｒ to life, the universe, everything, isn\u2019t it, DON'T panic!",
    "不要恐慌，生命、宇宙以及任何事情的终极答案，就是四十二。 é\u200bé 😀 カタカナ ελληνικά",
    "a b c d e f g h i j k l m n o p a b c d e f g h i j k l m n o p \U000e0041x",
)


def _native_search(benchmarks: Contamination) -> "_NativeSearch | None":
    """Return a search by native loops; None if it finds other runs in texts that hold some."""
    check = _contamination([_runs(text, 3) for text in _CHECK_TEXTS], head=3)
    texts = [*_CHECK_TEXTS, *(text[len(text) // 2 :] * 2 for text in _CHECK_TEXTS)]

    def differs(native: _NativeSearch) -> str | None:
        hits = native.hits(pa.array(texts, pa.large_string()))
        same = np.array_equal(hits, check.hits(texts))
        return None if same else "it finds other runs than it should"

    name = "Compiled code for benchmarks"
    found = proven(name, lambda: _NativeSearch(check), differs, plain=None)
    return found and _NativeSearch(benchmarks)


class _NativeSearch:
    """Finds what Contamination.hits() finds, by native loops."""

    def __init__(self, benchmarks: Contamination) -> None:
        from pipelines.filters import (  # noqa: PLC0415  imports numba
            contamination_kernels as kernels,
        )

        self._count_runs = kernels.count_runs
        kinds, values = character_tables()
        self._characters = kernels.Characters(kinds, values, WORD, SINGLE, NOTHING)
        lengths, hashes = [*benchmarks.runs], [*benchmarks.runs.values()]
        all_hashes = np.concatenate(hashes)
        head_bits, head_shift = _bits(benchmarks.heads)
        run_bits, run_shift = _bits(all_hashes)
        self._runs = kernels.Runs(
            base=np.uint64(BASE),
            inverse=np.uint64(pow(BASE, -1, 2**64)),
            head=benchmarks.head,
            heads=benchmarks.heads,
            head_bits=head_bits,
            head_shift=head_shift,
            lengths=np.array(lengths, np.int64),
            firsts=np.cumsum([0, *map(len, hashes)]),
            hashes=all_hashes,
            run_bits=run_bits,
            run_shift=run_shift,
            seen=np.zeros(len(all_hashes), np.int64),
            units=np.empty(max(_UNITS_AT_ONCE, 3 * lengths[-1]), np.uint64),
        )
        self._texts = 0

    def hits(self, texts: pa.Array) -> np.ndarray:
        """Return how many distinct runs of the benchmarks each text holds (int32[n])."""
        data, offsets = utf8(texts)
        counts = np.empty(len(texts), np.int32)
        self._count_runs(data, offsets, self._characters, self._runs, self._texts + 1, counts)
        self._texts += len(texts)
        return counts


_UNITS_AT_ONCE = 4096


def _bits(hashes: np.ndarray) -> tuple[np.ndarray, np.uint64]:
    """Return a table of bits that tells nearly all other hashes from these.

    Returns:
        By the leading bits of a hash a word (uint64) with three bits of each hash that has them, a
        Bloom filter that looks at one place only (two to four hashes share a word); and the shift
        that extracts the leading bits.
    """
    num_bits = max(1, len(hashes).bit_length() - 2)
    shift = np.uint64(64 - num_bits)
    table = np.zeros(1 << num_bits, np.uint64)
    places = (hashes >> shift).astype(np.int64)
    for part in range(3):
        low = hashes >> np.uint64(6 * part) & np.uint64(63)
        np.bitwise_or.at(table, places, np.uint64(1) << low)
    return table, shift


def load_contamination(paths: Sequence[str], *, n: int = WORDS) -> Contamination:
    """Return the runs of the items in some files.

    Args:
        paths: JSON lines, JSON arrays or Parquet. An item is the field `text` of a record or, if it
            has none, each string in the record (a question, each of its choices). Or plain text
            with an item on each line. Files may be compressed; folders and globs work too.
        n: Words in a run.

    Raises:
        UserError: A file cannot be read, an item has no text, or no item is long enough.
    """
    if n < 1:
        raise UserError(f"Runs of {n} words cannot be looked for: give at least 1, for example 13.")
    reading = Reading(text_fields=("text",))
    texts = [text for path, item in read_whole(paths, reading) for text in _texts(path, item)]
    found = [_runs(text, n) for text in texts]
    if not any(item.length for item in found):
        raise UserError(
            f"{', '.join(paths)}: none of the {len(texts)} items has {min(n, FEWEST_WORDS)} words, "
            "so there is nothing to look for. In plain text each line is an item: put every item "
            "on a single line."
        )
    return _contamination(found, head=min(n, FEWEST_WORDS))


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs of an item."""

    length: int
    """Units in each; 0 for a short item."""
    hashes: np.ndarray
    """uint64[n]."""
    heads: np.ndarray
    """uint64[n], the hash of the head of each."""


def _contamination(items: Sequence[_Runs], *, head: int) -> Contamination:
    """Return the runs of some items, not all of which may be short."""
    long = [item for item in items if item.length]
    by_length: dict[int, list[np.ndarray]] = {}
    for item in long:
        by_length.setdefault(item.length, []).append(item.hashes)
    distinct = {
        length: np.unique(np.concatenate(hashes)) for length, hashes in sorted(by_length.items())
    }
    return Contamination(
        runs=distinct,
        head=head,
        heads=np.unique(np.concatenate([item.heads for item in long])),
        items=len(items),
        skipped=len(items) - len(long),
        fingerprint=_fingerprint(distinct.items()),
    )


def _texts(path: str, item: Record | Damage) -> list[str]:
    if isinstance(item, Damage):
        raise UserError(
            f"{path}: the benchmark is damaged at byte {item.offset} ({item.reason}): "
            f"{item.raw[:60]!r}. Fetch the file again, or leave it out."
        )
    text = item.value.get("text")
    texts = [text] if isinstance(text, str) else [each for _, _, each in strings_in(item.value)]
    if not texts:
        raise UserError(
            f"{path}: no text in the item at {item.offset}: {item.head[:60]!r}. Expected a field "
            "text, or other fields that are strings."
        )
    return texts


def _runs(text: str, n: int) -> _Runs:
    """Return the runs of an item; of a short one there are none."""
    item = units([text])
    count = len(item.hashes)
    scale = CHARACTERS_PER_WORD if 2 * int(item.single.sum()) > count else 1
    least = min(n, FEWEST_WORDS)
    wanted, fewest = round(n * scale), round(least * scale)
    length = min(count, wanted)
    if length < fewest:
        return _Runs(0, item.hashes[:0], item.hashes[:0])
    hashes = item.runs(length)
    return _Runs(length, hashes, item.runs(least)[: len(hashes)])


def _filter(hashes: np.ndarray) -> tuple[np.ndarray, np.uint64]:
    """Return a table of the leading bits that occur, and the shift that extracts them."""
    bits = min(24, max(16, len(hashes).bit_length() + 3))
    shift = np.uint64(64 - bits)
    table = np.zeros(1 << bits, bool)
    table[(hashes >> shift).view(np.int64)] = True
    return table, shift


def _isin(values: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    places = np.minimum(np.searchsorted(hashes, values), len(hashes) - 1)
    same: np.ndarray = hashes[places] == values
    return same


def _fingerprint(runs: Iterable[tuple[int, np.ndarray]]) -> str:
    digest = hashlib.sha256()
    for length, hashes in runs:
        digest.update(f"{length}:{len(hashes)}:".encode())
        digest.update(hashes.astype("<u8").tobytes())
    return digest.hexdigest()
