"""Ranges of code points, text by text: what all rules are made of.

A metric is a sum, by text, of something that each of its words or lines is or is not. The few loops
over characters are here and compiled; the rules themselves are arithmetic on columns.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pipelines.compiled import kernel
from pipelines.quality.characters import BREAK, SPACE, Kinds, code_points, kinds_of_characters

# Any: to mypy numpy's numbers are not Python's, which kernels mix.
Codes: TypeAlias = npt.NDArray[Any]  # uint32
Places: TypeAlias = npt.NDArray[Any]  # int64
Flags: TypeAlias = npt.NDArray[Any]  # bool
Keys: TypeAlias = npt.NDArray[np.uint64]
Floats: TypeAlias = npt.NDArray[np.float64]

LINE_FEED = 0x0A
_RETURN = 0x0D

# Odd numbers with bits all over: 2**64 over the golden ratio, and FNV's prime for 64 bits mixed in.
_FACTOR, _SEED = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xCBF29CE484222325)
_HALF, _ONE = np.uint64(32), np.uint64(1)


class Characters:
    """Code points of some texts."""

    def __init__(self, codes: Codes) -> None:
        """Take the code points, uint32[n]."""
        self.codes = codes

    @cached_property
    def kinds(self) -> Kinds:
        """What each of them is, uint8[n]: see characters.py."""
        return _kinds_of(self.codes, kinds_of_characters())


@dataclass(frozen=True, slots=True)
class Spans:
    """Ranges of characters, such as the words of texts."""

    characters: Characters
    starts: Places
    """int64[n]: where each range begins."""
    ends: Places
    """int64[n]: where it ends."""
    of: Places
    """int64[texts + 1]: the ranges of a text are those from its number here to the next one."""

    def __getitem__(self, chosen: Flags) -> "Spans":
        """Return some of the ranges."""
        of = np.concatenate(([0], np.cumsum(self.sums(chosen))))
        return Spans(self.characters, self.starts[chosen], self.ends[chosen], of)

    @property
    def lengths(self) -> Places:
        """The characters of each range."""
        return self.ends - self.starts

    @property
    def counts(self) -> Places:
        """The ranges of each text."""
        return np.diff(self.of)

    def sums(self, values: Places | Flags) -> Places:
        """Return by text the sum of a number of each range."""
        return _sums(values, self.of)

    def owners(self) -> Places:
        """Return by range the number of its text."""
        return np.repeat(np.arange(len(self.of) - 1), self.counts)

    # --- what is in each range

    def count(self, character: str) -> Places:
        """Return by range how often a character is in it."""
        return _count(self.characters.codes, self.starts, self.ends, np.uint32(ord(character)))

    def having(self, kinds: int) -> Flags:
        """Return which ranges have a character of some kinds."""
        return _having(self.characters.kinds, self.starts, self.ends, kinds, 0)

    def lacking(self, kind: int) -> Flags:
        """Return which ranges have a character that is not of a kind."""
        return _having(self.characters.kinds, self.starts, self.ends, kind, kind)

    def first(self) -> Codes:
        """Return the first character of each range, 0 of an empty one."""
        return np.where(self.ends > self.starts, self.characters.codes[self.starts], np.uint32(0))

    def ending(self, kinds: int) -> Flags:
        """Return which ranges end in a character of some kinds."""
        last = self.characters.kinds[self.ends - 1]
        ended: Flags = (last & kinds > 0) & (self.ends > self.starts)
        return ended

    def ending_in(self, *texts: str) -> Flags:
        """Return which ranges end in one of some texts."""
        return _ending_in(self.characters.codes, self.starts, self.ends, _as_rows(texts))

    def keys(self) -> Keys:
        """Return a hash of what is in each range, uint64[n]."""
        return _keys(self.characters.codes, self.starts, self.ends)

    def repeating(self) -> Flags:
        """Return which ranges equal an earlier one of their text."""
        first, _ = number(self.keys(), self.of)
        return first < np.arange(len(first))

    # --- other ranges

    def stripped(self, kinds: int = SPACE) -> "Spans":
        """Return the ranges without the characters of some kinds around them."""
        starts, ends = _stripped(self.characters.kinds, self.starts, self.ends, kinds)
        return replace(self, starts=starts, ends=ends)

    def words(self) -> "Spans":
        """Return the words in each range, by range, as str.split() does."""
        return Spans(self.characters, *_words(self.characters.kinds, self.starts, self.ends))

    def num_words(self) -> Places:
        """Return by range the number of words that words() finds."""
        return _num_words(self.characters.kinds, self.starts, self.ends)

    def lines(self) -> "Spans":
        """Return the lines in each range, by range, as str.splitlines() does."""
        codes, kinds = self.characters.codes, self.characters.kinds
        return Spans(self.characters, *_lines(codes, kinds, self.starts, self.ends))

    def parts(self, *, feeds: int = 0) -> "Spans":
        """Return the parts of each range, by range.

        Args:
            feeds: The least number of line feeds that divide them; 0: each line feed does.
        """
        return Spans(self.characters, *_parts(self.characters.codes, self.starts, self.ends, feeds))

    def strings(self) -> list[str]:
        """Return what is in each range."""
        codes, starts, ends = self.characters.codes, self.starts, self.ends
        if 2 * self.lengths.sum() < len(codes):  # do not decode what is not asked for
            codes, ends = _gather(codes, starts, ends)
            starts = ends - self.lengths
        text = codes.tobytes().decode("utf-32-le", "surrogatepass")
        return [text[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]


def texts_as_spans(texts: Sequence[str]) -> Spans:
    """Return texts as a range each; the line feed after each is in none of them."""
    codes = code_points("\n".join((*texts, "")))
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    ends = np.cumsum(lengths + 1) - 1
    return Spans(Characters(codes), ends - lengths, ends, np.arange(len(texts) + 1))


def words_as_spans(words: Iterable[Sequence[str]]) -> Spans:
    """Return the words of each text back to back."""
    words = list(words)
    counts = np.fromiter(map(len, words), np.int64, len(words))
    every = list(chain.from_iterable(words))
    ends = np.cumsum(np.fromiter(map(len, every), np.int64, len(every)), dtype=np.int64)
    starts = np.concatenate((np.zeros(1, np.int64), ends))[: len(every)]
    of = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    return Spans(Characters(code_points("".join(every))), starts, ends, of)


def with_others(spans: Spans, others: Spans, texts: Places) -> Spans:
    """Return ranges with those of other characters for some texts, of which there are none yet.

    Args:
        spans: The ranges.
        others: The ranges of those texts.
        texts: Their numbers, ascending.
    """
    codes = np.concatenate((spans.characters.codes, others.characters.codes))
    shift, places = len(spans.characters.codes), np.repeat(spans.of[texts], others.counts)
    counts = spans.counts
    counts[texts] = others.counts
    return Spans(
        Characters(codes),
        np.insert(spans.starts, places, others.starts + shift),
        np.insert(spans.ends, places, others.ends + shift),
        np.concatenate(([0], np.cumsum(counts))),
    )


@cache
def _as_rows(texts: tuple[str, ...]) -> Codes:
    """Return texts as rows: the length, and the code points from the last one on."""
    rows = np.zeros((len(texts), 1 + max(map(len, texts))), np.uint32)
    for row, text in zip(rows, texts, strict=True):
        row[: 1 + len(text)] = [len(text), *map(ord, reversed(text))]
    return rows


def ratio(part: Places, whole: Places) -> Floats:
    """Return part / whole; NaN where the whole is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole, part / whole, np.nan)


@kernel
def _kinds_of(codes: Codes, table: Kinds) -> Kinds:
    kinds = np.empty(len(codes), np.uint8)
    for place in range(len(codes)):
        kinds[place] = table[codes[place]]
    return kinds


@kernel
def _gather(codes: Codes, starts: Places, ends: Places) -> tuple[Codes, Places]:
    """Return what is in ranges back to back, and where each of them ends there."""
    size = 0
    for index in range(len(starts)):
        size += ends[index] - starts[index]
    gathered, new_ends = np.empty(size, np.uint32), np.empty(len(starts), np.int64)
    at = 0
    for index in range(len(starts)):
        new_ends[index] = at + ends[index] - starts[index]
        gathered[at : new_ends[index]] = codes[starts[index] : ends[index]]
        at = new_ends[index]
    return gathered, new_ends


@kernel
def _sums(values: Places, of: Places) -> Places:
    sums = np.zeros(len(of) - 1, np.int64)
    for text in range(len(sums)):
        for at in range(of[text], of[text + 1]):
            sums[text] += values[at]
    return sums


@kernel
def _count(codes: Codes, starts: Places, ends: Places, wanted: np.uint32) -> Places:
    counts = np.zeros(len(starts), np.int64)
    for index in range(len(starts)):
        count = 0
        for code in codes[starts[index] : ends[index]]:
            count += code == wanted
        counts[index] = count
    return counts


@kernel
def _having(kinds: Kinds, starts: Places, ends: Places, wanted: int, turned: int) -> Flags:
    """Return which ranges have a character of wanted kinds, once the turned ones are inverted."""
    found = np.zeros(len(starts), np.bool_)
    for index in range(len(starts)):
        for kind in kinds[starts[index] : ends[index]]:
            if (kind ^ turned) & wanted:
                found[index] = True
                break
    return found


@kernel
def _ending_in(codes: Codes, starts: Places, ends: Places, rows: Codes) -> Flags:
    found = np.zeros(len(starts), np.bool_)
    for index in range(len(starts)):
        for row in range(len(rows)):
            length, end = np.int64(rows[row, 0]), ends[index]
            if end - starts[index] < length or codes[end - 1] != rows[row, 1]:
                continue
            same = 1
            while same < length and codes[end - 1 - same] == rows[row, 1 + same]:
                same += 1
            found[index] |= same == length
    return found


@kernel
def _stripped(kinds: Kinds, starts: Places, ends: Places, kind: int) -> tuple[Places, Places]:
    starts, ends = starts.copy(), ends.copy()
    for index in range(len(starts)):
        while starts[index] < ends[index] and kinds[starts[index]] & kind:
            starts[index] += 1
        while starts[index] < ends[index] and kinds[ends[index] - 1] & kind:
            ends[index] -= 1
    return starts, ends


@kernel
def hash_of(codes: Codes) -> np.uint64:
    """Return a hash of code points, good in its upper half."""
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
def _keys(codes: Codes, starts: Places, ends: Places) -> Keys:
    keys = np.empty(len(starts), np.uint64)
    for index in range(len(starts)):
        keys[index] = hash_of(codes[starts[index] : ends[index]])
    return keys


@kernel
def _words(kinds: Kinds, starts: Places, ends: Places) -> tuple[Places, Places, Places]:
    """Return words at spaces.

    Every place is written as the next beginning and the next end, and stays if it is one: nothing
    depends on guessing how long words are, which is what takes a processor's time.
    """
    most = len(kinds) // 2 + len(starts) + 1
    firsts, lasts = np.empty(most, np.int64), np.empty(most, np.int64)
    of = np.zeros(len(starts) + 1, np.int64)
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
        of[text + 1] = ended
    return firsts[:ended], lasts[:ended], of


@kernel
def _num_words(kinds: Kinds, starts: Places, ends: Places) -> Places:
    counts = np.zeros(len(starts), np.int64)
    for index in range(len(starts)):
        count, before = 0, SPACE
        for kind in kinds[starts[index] : ends[index]]:
            count += before & ~kind & SPACE
            before = kind
        counts[index] = count
    return counts


@kernel
def _lines(
    codes: Codes, kinds: Kinds, starts: Places, ends: Places
) -> tuple[Places, Places, Places]:
    most = len(starts)
    for kind in kinds:
        most += kind & BREAK != 0
    firsts, lasts = np.empty(most, np.int64), np.empty(most, np.int64)
    of = np.zeros(len(starts) + 1, np.int64)
    count = 0
    for text in range(len(starts)):
        # Indices of a slice that count up from 0 are known not to be negative, which saves much.
        start, part = starts[text], kinds[starts[text] : ends[text]]
        first, after_return = 0, -1
        for at in range(len(part)):
            if not part[at] & BREAK:
                continue
            if at != after_return or codes[start + at] != LINE_FEED:
                firsts[count], lasts[count] = start + first, start + at
                count += 1
            first = at + 1
            after_return = first if codes[start + at] == _RETURN else -1
        if first < len(part):
            firsts[count], lasts[count] = start + first, ends[text]
            count += 1
        of[text + 1] = count
    return firsts[:count], lasts[:count], of


@kernel
def _parts(codes: Codes, starts: Places, ends: Places, feeds: int) -> tuple[Places, Places, Places]:
    most = len(starts)
    for code in codes:
        most += code == LINE_FEED
    firsts, lasts = np.empty(most, np.int64), np.empty(most, np.int64)
    of = np.zeros(len(starts) + 1, np.int64)
    count = 0
    for text in range(len(starts)):
        start, part = starts[text], codes[starts[text] : ends[text]]
        first = run = after_run = 0
        for at in range(len(part)):
            if part[at] != LINE_FEED:
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
        of[text + 1] = count
    return firsts[:count], lasts[:count], of


@kernel
def number(keys: Keys, of: Places) -> tuple[Places, Places]:
    """Return for each key the place of the first equal one of its text, and there their number.

    Args:
        keys: uint64[n].
        of: int64[texts + 1]: where the keys of each text begin.
    """
    most = 1
    for text in range(len(of) - 1):
        most = max(most, of[text + 1] - of[text])
    size = 4
    while size < 2 * most:
        size *= 2
    slots = np.empty(size, np.int64)
    first, counts = np.empty(len(keys), np.int64), np.zeros(len(keys), np.int64)
    for text in range(len(of) - 1):
        # As small as this text needs, so that it stays in the processor's cache.
        size = 4
        while size < 2 * (of[text + 1] - of[text]):
            size *= 2
        mask = np.uint64(size - 1)
        slots[:size] = -1
        for at in range(of[text], of[text + 1]):
            slot = (keys[at] * _FACTOR >> _HALF) & mask
            while slots[slot] >= 0 and keys[slots[slot]] != keys[at]:
                slot = (slot + _ONE) & mask
            if slots[slot] < 0:
                slots[slot] = at
            first[at] = slots[slot]
            counts[first[at]] += 1
    return first, counts
