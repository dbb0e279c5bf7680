"""Ranges of code points in texts, on which all rules are built.

A metric counts, for each text, the words or lines that have some property. The few loops over
characters are compiled kernels in this module; the rules themselves are arithmetic on columns.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pipelines.compiled import kernel
from pipelines.quality.characters import (
    BREAK,
    SPACE,
    Kinds,
    code_points,
    kinds_of_characters,
    text_of,
)

# Any, because kernels mix numpy's numbers with Python's, which mypy keeps separate.
Codes: TypeAlias = npt.NDArray[Any]  # uint32
Places: TypeAlias = npt.NDArray[Any]  # int64
Flags: TypeAlias = npt.NDArray[Any]  # bool
Keys: TypeAlias = npt.NDArray[np.uint64]
Floats: TypeAlias = npt.NDArray[np.float64]

_LINE_FEED, _RETURN = ord("\n"), ord("\r")

# Odd numbers with well-mixed bits: 2**64 divided by the golden ratio, and FNV's offset basis.
_FACTOR, _SEED = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xCBF29CE484222325)
_HALF, _ONE = np.uint64(32), np.uint64(1)


class Characters:
    """The code points of some texts; the last one is a line feed that belongs to no text."""

    def __init__(self, codes: Codes, kinds: Kinds | None = None) -> None:
        """Store code points, uint32[n], and their kinds if these are known."""
        self.codes = codes.view()
        # Arrays of strings are read-only; numba would compile kernels again for writable arrays.
        self.codes.flags.writeable = False
        if kinds is not None:
            self.kinds = kinds

    @cached_property
    def kinds(self) -> Kinds:
        """The kinds of each character, uint8[n]; see characters.py."""
        kinds = np.empty(len(self.codes), np.uint8)
        _read_kinds(self.codes, kinds_of_characters(), kinds)
        return kinds

    def beginning(self, text: str, places: Places) -> Places:
        """Return those of the places at which a text begins."""
        places = places[(places >= 0) & (places + len(text) <= len(self.codes))]
        for at, character in enumerate(text):
            places = places[self.codes[places + at] == ord(character)]
        return places


@dataclass(frozen=True, slots=True)
class Spans:
    """Ranges of characters, such as the words of texts, grouped by text."""

    characters: Characters
    starts: Places
    """int64[n]: where each range begins."""
    ends: Places
    """int64[n]: where each range ends."""
    offsets: Places
    """int64[texts + 1]: the index of the first range of each text, and the number of ranges."""

    def __getitem__(self, chosen: Flags) -> "Spans":
        """Return the ranges whose flag is set."""
        offsets = cumsum_from_zero(chosen)[self.offsets]
        return Spans(self.characters, self.starts[chosen], self.ends[chosen], offsets)

    @property
    def lengths(self) -> Places:
        """The number of characters in each range."""
        return self.ends - self.starts

    @property
    def counts(self) -> Places:
        """The number of ranges in each text."""
        return np.diff(self.offsets)

    def sums(self, values: Places | Flags) -> Places:
        """Return, for each text, the sum of the values of its ranges."""
        sums = np.zeros(len(self.offsets) - 1, np.int64)
        _add(values, self.offsets, sums)
        return sums

    # --- contents of each range

    def having(self, kinds: int) -> Flags:
        """Return which ranges contain a character of one of the kinds."""
        return self._having(kinds, 0)

    def lacking(self, kind: int) -> Flags:
        """Return which ranges contain a character that is not of this kind."""
        return self._having(kind, kind)

    def _having(self, wanted: int, turned: int) -> Flags:
        found = np.zeros(len(self.starts), np.bool_)
        _find_kinds(self.characters.kinds, self.starts, self.ends, wanted, turned, found)
        return found

    def first(self) -> Codes:
        """Return the first character of each range; 0 for an empty range."""
        return np.where(self.ends > self.starts, self.characters.codes[self.starts], np.uint32(0))

    def ending(self, kinds: int) -> Flags:
        """Return which ranges end with a character of one of the kinds."""
        last = self.characters.kinds[self.ends - 1]
        ended: Flags = (last & kinds > 0) & (self.ends > self.starts)
        return ended

    def ending_in(self, *texts: str) -> Flags:
        """Return which ranges end with one of the texts."""
        codes, found = self.characters.codes, np.zeros(len(self.starts), np.bool_)
        last = codes[self.ends - 1]
        for text in texts:
            ending = np.flatnonzero(last == ord(text[-1]))
            ending = ending[self.lengths[ending] >= len(text)]
            for back, character in enumerate(reversed(text[:-1]), 2):
                ending = ending[codes[self.ends[ending] - back] == ord(character)]
            found[ending] = True
        return found

    def hashes(self) -> Keys:
        """Return a hash of the content of each range, uint64[n]."""
        keys = np.empty(len(self.starts), np.uint64)
        _hash(self.characters.codes, self.starts, self.ends, keys)
        return keys

    def repeating(self) -> Flags:
        """Return which ranges equal an earlier range of the same text."""
        first, _ = first_occurrences(self.hashes(), self.offsets)
        return first < np.arange(len(first))

    def num_words(self) -> Places:
        """Return, for each range, the number of words that words() finds."""
        counts = np.empty(len(self.starts), np.int64)
        _count_words(self.characters.kinds, self.starts, self.ends, counts)
        return counts

    def strings(self) -> list[str]:
        """Return the content of each range."""
        if 2 * self.lengths.sum() < len(self.characters.codes) - 1:  # decode only these
            return self.joined().strings()
        text = text_of(self.characters.codes)
        return [text[a:b] for a, b in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]

    # --- contents of ascending ranges with gaps between them, such as texts

    def runs(self, places: Places) -> "Spans":
        """Return the stretches of adjacent places, grouped by range; places ascend."""
        inside = self._inside(places)
        begin = np.diff(inside.starts, prepend=-2) > 1
        ends = inside.ends[np.roll(begin, -1)]
        return Spans(
            self.characters, inside.starts[begin], ends, cumsum_from_zero(begin)[inside.offsets]
        )

    def lines(self) -> "Spans":
        """Return the lines of each range, grouped by range, as str.splitlines() does."""
        codes, kinds = self.characters.codes, self.characters.kinds
        offsets = np.zeros(len(self.starts) + 1, np.int64)
        most = len(self.starts) + np.count_nonzero(kinds & BREAK)
        starts, ends = np.empty((2, most), np.int64)
        _find_lines(codes, kinds, self.starts, self.ends, starts, ends, offsets)
        return Spans(self.characters, starts[: offsets[-1]], ends[: offsets[-1]], offsets)

    def count(self, text: str) -> Places:
        """Return how often a text, which is one or more equal characters, occurs in each range."""
        if len(text) > 1:
            runs = self.runs(np.flatnonzero(self.characters.codes == ord(text[0])))
            return runs.sums(runs.lengths // len(text))
        counts = np.empty(len(self.starts), np.int64)
        _count(self.characters.codes, self.starts, self.ends, ord(text), counts)
        return counts

    def between(self, dividers: "Spans") -> "Spans":
        """Return the parts of the ranges between dividers, grouped by range; parts may be empty."""
        offsets = dividers.offsets + np.arange(len(dividers.offsets))
        starts, ends = np.empty((2, offsets[-1]), np.int64)
        behind = np.ones((2, offsets[-1]), np.bool_)
        behind[0, offsets[:-1]] = behind[1, offsets[1:] - 1] = False
        starts[offsets[:-1]], ends[offsets[1:] - 1] = self.starts, self.ends
        starts[behind[0]], ends[behind[1]] = dividers.ends, dividers.starts
        return Spans(self.characters, starts, ends, offsets)

    def _inside(self, places: Places) -> "Spans":
        """Return the places in each range, grouped by range; places ascend."""
        firsts, lasts = np.searchsorted(places, (self.starts, self.ends))
        offsets = cumsum_from_zero(lasts - firsts)
        inside = places[np.arange(offsets[-1]) + np.repeat(firsts - offsets[:-1], lasts - firsts)]
        return Spans(self.characters, inside, inside + 1, offsets)

    # --- new ranges

    def stripped(self, kinds: int = SPACE) -> "Spans":
        """Return the ranges without characters of these kinds at either end."""
        starts, ends = self._stripped(kinds)
        return replace(self, starts=starts, ends=np.maximum(starts, ends))

    def stripped_before(self, kinds: int) -> "Spans":
        """Return the ranges without characters of these kinds at the beginning."""
        return replace(self, starts=self._stripped(kinds)[0])

    def stripped_behind(self, kinds: int) -> "Spans":
        """Return the ranges without characters of these kinds at the end."""
        return replace(self, ends=self._stripped(kinds)[1])

    def _stripped(self, kinds: int) -> tuple[Places, Places]:
        starts, ends = self.starts.copy(), self.ends.copy()
        _strip(self.characters.kinds, self.starts, self.ends, kinds, starts, ends)
        return starts, ends

    def words(self) -> "Spans":
        """Return the words of each range, grouped by range, as str.split() does."""
        kinds, offsets = self.characters.kinds, np.zeros(len(self.starts) + 1, np.int64)
        starts, ends = np.empty((2, len(kinds) // 2 + len(self.starts) + 1), np.int64)
        _find_words(kinds, self.starts, self.ends, starts, ends, offsets)
        return Spans(self.characters, starts[: offsets[-1]], ends[: offsets[-1]], offsets)

    def parts(self, *, feeds: int = 0) -> "Spans":
        """Return the parts of each range between line feeds, grouped by range.

        Args:
            feeds: The minimum number of adjacent line feeds that divide parts; 0 if each divides.
        """
        codes, offsets = self.characters.codes, np.zeros(len(self.starts) + 1, np.int64)
        most = len(self.starts) + np.count_nonzero(codes == _LINE_FEED)
        starts, ends = np.empty((2, most), np.int64)
        _find_parts(codes, self.starts, self.ends, feeds, starts, ends, offsets)
        return Spans(self.characters, starts[: offsets[-1]], ends[: offsets[-1]], offsets)

    def without(self, starts: Places, ends: Places) -> tuple["Spans", Flags]:
        """Return the ranges after removing parts, and which ranges have changed; ranges ascend.

        Args:
            starts: Where the parts begin, ascending; each part is in a range.
            ends: Where the parts end.
        """
        codes, kinds, lasts = (
            column.copy() for column in (self.characters.codes, self.characters.kinds, self.ends)
        )
        _close_up(self.ends, starts, ends, codes, kinds, lasts)
        return replace(self, characters=Characters(codes, kinds), ends=lasts), lasts < self.ends

    def joined(self, *, feeds: int = 0) -> "Spans":
        """Return the ranges one after another, in a copy of the ranges' characters.

        Args:
            feeds: The number of line feeds after each range; the last range gets one more.
        """
        ends = np.cumsum(self.lengths + feeds)
        starts = ends - feeds - self.lengths
        codes = np.full((ends[-1] if len(ends) else 0) + 1, _LINE_FEED, np.uint32)
        _copy(self.characters.codes, self.starts, self.ends, starts, codes)
        return Spans(Characters(codes), starts, ends - feeds, self.offsets)


def texts_as_spans(texts: Sequence[str]) -> Spans:
    """Return one range per text; the line feed after each text is outside of the range."""
    codes = code_points("\n".join((*texts, "")))
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    ends = np.cumsum(lengths + 1) - 1
    return Spans(Characters(codes), ends - lengths, ends, np.arange(len(texts) + 1))


def words_as_spans(words: Iterable[Sequence[str]]) -> Spans:
    """Return the words of each text as ranges with no gaps between them."""
    words = list(words)
    every = list(chain.from_iterable(words))
    places = cumsum_from_zero(np.fromiter(map(len, every), np.int64, len(every)))
    offsets = cumsum_from_zero(np.fromiter(map(len, words), np.int64, len(words)))
    return Spans(Characters(code_points("".join((*every, "\n")))), places[:-1], places[1:], offsets)


def insert_spans(spans: Spans, others: Spans, texts: Places) -> Spans:
    """Return ranges after inserting others, with their characters, for texts that have none.

    Args:
        spans: The ranges.
        others: The ranges to insert, grouped by text.
        texts: The indices of the texts that get them, ascending.
    """
    codes = np.concatenate((spans.characters.codes, others.characters.codes))
    shift, places = len(spans.characters.codes), np.repeat(spans.offsets[texts], others.counts)
    counts = spans.counts
    counts[texts] = others.counts
    return Spans(
        Characters(codes),
        np.insert(spans.starts, places, others.starts + shift),
        np.insert(spans.ends, places, others.ends + shift),
        cumsum_from_zero(counts),
    )


def first_occurrences(keys: Keys, offsets: Places) -> tuple[Places, Places]:
    """Return, for each key, the place of the first equal key in the same text, and counts.

    Args:
        keys: uint64[n].
        offsets: int64[texts + 1]: where the keys of each text begin.

    Returns:
        int64[n], the places; int64[n], how often each key occurs, at the key's first place.
    """
    first, counts = np.empty(len(keys), np.int64), np.zeros(len(keys), np.int64)
    slots = np.empty(num_slots(max(np.diff(offsets), default=0)), np.int64)
    _number(keys, offsets, slots, first, counts)
    return first, counts


def cumsum_from_zero(values: Places | Flags) -> Places:
    """Return int64[n + 1]: the sums of the values before each value, and of all values."""
    sums = np.zeros(len(values) + 1, np.int64)
    sums[1:] = values
    return sums.cumsum()


def ratio(part: Places, whole: Places) -> Floats:
    """Return part / whole; NaN where the whole is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole, part / whole, np.nan)


@kernel
def _read_kinds(codes: Codes, table: Kinds, kinds: Kinds) -> None:
    for place in range(len(codes)):
        kinds[place] = table[codes[place]]


@kernel
def _add(values: Places, offsets: Places, sums: Places) -> None:
    for text in range(len(sums)):
        for at in range(offsets[text], offsets[text + 1]):
            sums[text] += values[at]


@kernel
def _copy(codes: Codes, starts: Places, ends: Places, to: Places, copies: Codes) -> None:
    """Copy ranges to new places in an array of copies."""
    for index in range(len(starts)):
        for at in range(ends[index] - starts[index]):
            copies[to[index] + at] = codes[starts[index] + at]


@kernel
def _close_up(
    ends: Places,
    firsts: Places,
    lasts: Places,
    codes: Codes,
    kinds: Kinds,
    stops: Places,
) -> None:
    """Remove parts of ranges by moving the characters after the parts, and the ranges' ends."""
    index = 0
    for part in range(len(firsts)):
        while ends[index] <= firsts[part]:
            index += 1
        to, end = firsts[part] - ends[index] + stops[index], ends[index]
        if part + 1 < len(firsts):
            end = min(end, firsts[part + 1])
        for at in range(lasts[part], end):
            codes[to], kinds[to] = codes[at], kinds[at]
            to += 1
        stops[index] -= lasts[part] - firsts[part]


@kernel
def _find_kinds(
    kinds: Kinds, starts: Places, ends: Places, wanted: int, turned: int, found: Flags
) -> None:
    """Mark ranges with a character that has a `wanted` bit, after inverting the `turned` bits."""
    for index in range(len(starts)):
        for kind in kinds[starts[index] : ends[index]]:
            if (kind ^ turned) & wanted:
                found[index] = True
                break


@kernel
def _strip(
    kinds: Kinds, starts: Places, ends: Places, kind: int, firsts: Places, lasts: Places
) -> None:
    """Move the first and last borders of ranges, independently, past characters of a kind."""
    for index in range(len(starts)):
        while firsts[index] < ends[index] and kinds[firsts[index]] & kind:
            firsts[index] += 1
        while starts[index] < lasts[index] and kinds[lasts[index] - 1] & kind:
            lasts[index] -= 1


@kernel
def hash_of(codes: Codes) -> np.uint64:
    """Return a hash of code points; its upper half is well mixed."""
    key, other = _SEED ^ np.uint64(len(codes)), _FACTOR
    paired = len(codes) & ~3
    for at in range(0, paired, 4):
        key = (key ^ (np.uint64(codes[at]) | (np.uint64(codes[at + 1]) << _HALF))) * _FACTOR
        pair = np.uint64(codes[at + 2]) | (np.uint64(codes[at + 3]) << _HALF)
        other = (other ^ pair) * _FACTOR
    key ^= (other >> _HALF) | (other << _HALF)
    for at in range(paired, len(codes)):
        key = (key ^ np.uint64(codes[at])) * _FACTOR
    return (key ^ (key >> _HALF)) * _FACTOR


@kernel
def _hash(codes: Codes, starts: Places, ends: Places, keys: Keys) -> None:
    for index in range(len(starts)):
        keys[index] = hash_of(codes[starts[index] : ends[index]])


@kernel
def _find_words(
    kinds: Kinds, starts: Places, ends: Places, firsts: Places, lasts: Places, offsets: Places
) -> None:
    """Write where words between spaces begin and end.

    Every place is written as the next beginning and the next end, and is kept only if it is one,
    because a branch would be mispredicted too often.
    """
    begun = ended = 0
    for text in range(len(starts)):
        before = True
        for place in range(starts[text], ends[text]):
            space = kinds[place] & SPACE != 0
            firsts[begun], lasts[ended] = place, place
            begun += before & (not space)
            ended += space & (not before)
            before = space
        lasts[ended] = ends[text]
        ended += not before
        offsets[text + 1] = ended


@kernel
def _find_lines(  # noqa: PLR0913, PLR0917  ranges, and where to write
    codes: Codes,
    kinds: Kinds,
    starts: Places,
    ends: Places,
    firsts: Places,
    lasts: Places,
    offsets: Places,
) -> None:
    """Write where lines begin and end; a carriage return and a line feed are one line break."""
    count = 0
    for text in range(len(starts)):
        # numba knows that indices that count up from 0 are not negative, which saves much time.
        start, part = starts[text], kinds[starts[text] : ends[text]]
        first, after_return = 0, -1
        for at in range(len(part)):
            if not part[at] & BREAK:
                continue
            if at != after_return or codes[start + at] != _LINE_FEED:
                firsts[count], lasts[count] = start + first, start + at
                count += 1
            first = at + 1
            after_return = first if codes[start + at] == _RETURN else -1
        if first < len(part):
            firsts[count], lasts[count] = start + first, ends[text]
            count += 1
        offsets[text + 1] = count


@kernel
def _find_parts(  # noqa: PLR0913, PLR0917  ranges, and where to write
    codes: Codes,
    starts: Places,
    ends: Places,
    feeds: int,
    firsts: Places,
    lasts: Places,
    offsets: Places,
) -> None:
    """Write where parts between line feeds begin and end."""
    count = 0
    for text in range(len(starts)):
        start, part = starts[text], codes[starts[text] : ends[text]]
        first = run = after_run = 0
        for at in range(len(part)):
            if part[at] != _LINE_FEED:
                continue
            if at != after_run or not feeds:
                run = at
            after_run = at + 1
            if after_run - run == max(feeds, 1):
                firsts[count], lasts[count] = start + first, start + run
                count += 1
            if after_run - run >= feeds:
                first = after_run
        firsts[count], lasts[count] = start + first, ends[text]
        count += 1
        offsets[text + 1] = count


@kernel
def _count(codes: Codes, starts: Places, ends: Places, wanted: int, counts: Places) -> None:
    for index in range(len(starts)):
        count = 0
        for code in codes[starts[index] : ends[index]]:
            count += code == wanted
        counts[index] = count


@kernel
def _count_words(kinds: Kinds, starts: Places, ends: Places, counts: Places) -> None:
    for index in range(len(starts)):
        count, before = 0, SPACE
        for kind in kinds[starts[index] : ends[index]]:
            count += before & ~kind & SPACE
            before = kind
        counts[index] = count


@kernel
def _number(keys: Keys, offsets: Places, slots: Places, first: Places, counts: Places) -> None:
    for text in range(len(offsets) - 1):
        # Use only as many slots as this text needs, so that they stay in the CPU's cache.
        size = num_slots(offsets[text + 1] - offsets[text])
        mask = np.uint64(size - 1)
        for slot in range(size):
            slots[slot] = -1
        for at in range(offsets[text], offsets[text + 1]):
            place = (keys[at] * _FACTOR >> _HALF) & mask
            while slots[place] >= 0 and keys[slots[place]] != keys[at]:
                place = (place + _ONE) & mask
            if slots[place] < 0:
                slots[place] = at
            first[at] = slots[place]
            counts[first[at]] += 1


@kernel
def num_slots(num_keys: int) -> int:
    """Return the number of slots of a hash table for some keys, a power of two."""
    slots = 4
    while slots < 2 * num_keys:
        slots *= 2
    return slots
