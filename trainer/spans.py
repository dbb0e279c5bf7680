"""Where the blanks of token spans lie in a text: their lengths, their documents, their places.

A text of n tokens, prompts left out, has a budget of 15 % of them. Lengths are drawn from a Poisson
distribution until they reach the budget. Then each blank is dealt to a run of the text, which is
about a document (`find_runs`), and put in a place there:

    the runs laid end to end  |······ run 0 ······|·· run 1 ··|········ run 2 ········|
    the blanks on that line   ├──┼─────┼────┼──┼───────┼───┼─────┼────┼───┼──────┼───┤
                              stretched to its length, turned by a random distance

A blank goes to the run that its middle falls into. So every document gets its share of the budget,
give or take a blank, and every token about the same chance, whatever the lengths of documents.
Where documents are so short that a run cannot hold what fell to it (blanks keep one token between
them), it takes what it can, and the rest goes to the run with the most room, in pieces if it must,
until the budget is reached or all runs are full. No sample is left out.

THUDM/GLM (blocklm_utils.py, sample_span_in_document) gives the longest document what the others
leave, and drops the sample if that does not fit. In a text of one document both are the same.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import accumulate
from math import factorial
from typing import NamedTuple

import numpy as np

from trainer.chance import Chance, Integers, Purpose, below, shuffled
from trainer.text import Flags, Spans, firsts, sums_within

_MEAN_LENGTH = 3
_MAX_LENGTH = 39
"""Blank lengths are distributed by Poisson's law of mean 3 on 1 to 39, as in THUDM/GLM,
blocklm_utils.py (average_block_length 3, max_block_length 40, exclusive)."""
_BITS = 53
_MOVED = 1 << 32
"""Blanks that were moved are numbered from here on; no text draws so many."""


def _thresholds() -> Integers:
    """Return int64[38]: the distribution function of lengths 1 to 38, in units of 2^-53."""
    weights = [Fraction(_MEAN_LENGTH**k, factorial(k)) for k in range(1, _MAX_LENGTH + 1)]
    sums = list(accumulate(weights))
    return np.array([int(part / sums[-1] * 2**_BITS) for part in sums[:-1]], np.int64)


_THRESHOLDS = _thresholds()


class _Blanks(NamedTuple):
    """Blanks that have no place yet."""

    runs: Integers
    """The run of each."""
    sizes: Integers
    numbers: Integers
    """The number of each in its row: the counter of its random words."""


class _Fit(NamedTuple):
    """Blanks by run, in random order, and the room that they take."""

    blanks: _Blanks
    until: Integers
    """The room that a blank and those before it in its run take, a gap after each included."""


def token_spans(runs: Spans, budgets: Integers, *, chance: Chance, longest: int) -> Spans:
    """Return blanks in the rows that have runs.

    Args:
        runs: where blanks may be.
        budgets: by row, how many tokens they cover, 1 or more: at least that many if the runs have
            room, and not 39 more. A budget of 1 makes one blank.
        chance: the random numbers of the batch.
        longest: the most tokens of a blank.
    """
    if not len(runs.rows):
        return runs
    first = firsts(runs.rows)
    rows = runs.rows[first]
    lengths = np.add.reduceat(runs.sizes, first)
    budgets = np.minimum(budgets[rows], lengths)
    widest = np.minimum(np.maximum.reduceat(runs.sizes, first), longest)
    owners, numbers, sizes, middles = _draw(rows, budgets, widest=widest, chance=chance)
    turns = below(chance.words(Purpose.SPAN_SHARE, rows), lengths)
    totals = np.bincount(owners, sizes).astype(np.int64)
    at = (middles * lengths[owners] // (2 * totals[owners]) + turns[owners]) % lengths[owners]
    ends = np.cumsum(runs.sizes)
    dealt = np.searchsorted(ends, (ends - runs.sizes)[first][owners] + at, side="right")
    fit = _fit(_Blanks(dealt, sizes, numbers), runs, chance)
    fits = fit.until <= runs.sizes[fit.blanks.runs] + 1
    if not fits.all():
        fit = _fit(_moved(fit, fits, runs=runs, first=first, budgets=budgets), runs, chance)
    return _placed(fit, runs, chance)


def _draw(
    rows: Integers, budgets: Integers, *, widest: Integers, chance: Chance
) -> tuple[Integers, Integers, Integers, Integers]:
    """Return for each blank its row (index into `rows`), its number there, size, twice its middle.

    The middle is where it would lie if the blanks of a row lay end to end.
    """
    most = int(budgets.max())
    for count in (most // 2 + 8, most):  # the second is always enough: blanks have a token or more
        words = chance.stream(Purpose.SPAN_LENGTHS, rows[:, None], np.arange(count)) >> (64 - _BITS)
        sizes = 1 + np.searchsorted(_THRESHOLDS, words.astype(np.int64), side="right")
        sizes = np.minimum(sizes, widest[:, None])
        ends = np.cumsum(sizes, axis=1)
        if (ends[:, -1] >= budgets).all():
            break
    used = ends - sizes < budgets[:, None]
    owners, numbers = np.nonzero(used)
    return owners, numbers, sizes[used], 2 * ends[used] - sizes[used]


def _fit(blanks: _Blanks, runs: Spans, chance: Chance) -> _Fit:
    words = chance.stream(Purpose.SPAN_ORDER, runs.rows[blanks.runs], blanks.numbers)
    order = shuffled(blanks.runs, words)
    blanks = _Blanks(*(part[order] for part in blanks))
    return _Fit(blanks, sums_within(blanks.runs, blanks.sizes + 1))


def _moved(fit: _Fit, fits: Flags, *, runs: Spans, first: Integers, budgets: Integers) -> _Blanks:
    """Return the blanks that fit, and of the others what finds room in its row and is needed.

    `first` is the first run of each row.
    """
    at, sizes, numbers = fit.blanks
    owners = np.searchsorted(first, at, side="right") - 1
    lacks = budgets - np.bincount(owners[fits], sizes[fits], len(first)).astype(np.int64)
    room = runs.sizes + 1
    np.subtract.at(room, at[fits], sizes[fits] + 1)
    edges = np.append(first, len(room)).tolist()
    moved: list[tuple[int, int, int]] = []
    for owner in np.unique(owners[~fits]).tolist():
        own = slice(edges[owner], edges[owner + 1])
        mine = ~fits & (owners == owner)
        waiting = zip((at[mine] - own.start).tolist(), sizes[mine].tolist(), strict=True)
        found = _refill(waiting, room[own], lack=int(lacks[owner]))
        moved += [(own.start + run, size, _MOVED + i) for i, (run, size) in enumerate(found)]
    added = np.array(moved, np.int64).reshape(-1, 3).T
    stay = at[fits], sizes[fits], numbers[fits]
    return _Blanks(*map(np.concatenate, zip(stay, added, strict=True)))


def _refill(
    waiting: Iterable[tuple[int, int]], room: Integers, *, lack: int
) -> Iterator[tuple[int, int]]:
    """Yield run and size of blanks made of those that wait, until nothing lacks or fits.

    What does not fit into a blank's own run goes to the one with the most room.
    """
    for own, size in waiting:
        run, left = own, min(size, lack)
        while left > 0 and room.max() > 1:
            taken = min(left, int(room[run]) - 1)
            if taken > 0:
                yield run, taken
                room[run] -= taken + 1
                left -= taken
                lack -= taken
            run = int(room.argmax())


def _placed(fit: _Fit, runs: Spans, chance: Chance) -> Spans:
    """Return the blanks in their places: the gaps of a run are a uniformly random way to fill it.

    With M tokens to spare, as many integers in [0, M] as there are blanks, sorted, say how many of
    them lie before each.
    """
    at, sizes, numbers = fit.blanks
    taken = np.zeros(len(runs.rows), np.int64)
    taken[at] = fit.until  # the last of a run stays
    spare = runs.sizes + 1 - taken
    words = chance.stream(Purpose.SPAN_PLACES, runs.rows[at], numbers)
    shift = at << 32
    places = np.sort(shift + below(words, spare[at] + 1)) - shift
    return Spans(runs.rows[at], runs.starts[at] + places + fit.until - sizes - 1, sizes)
