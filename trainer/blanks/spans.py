"""Draws the blanks of token spans in a text: their lengths, documents and places.

The budget of a text is 15 % of its tokens, not counting prompts. Lengths are drawn from a Poisson
distribution until they reach the budget. Then each blank is dealt to a run of the text, roughly a
document (`find_runs`), and placed within it:

    the runs laid end to end  |······ run 0 ······|·· run 1 ··|········ run 2 ········|
    the blanks on that line   ├──┼─────┼────┼──┼───────┼───┼─────┼────┼───┼──────┼───┤
                              stretched to its length, turned by a random distance

A blank goes to the run that contains its middle. So every document gets its share of the budget,
give or take a blank, and every token is about equally likely to be covered, however long the
documents are. If documents are so short that a run cannot hold the blanks that were dealt to it
(there is at least one token between two blanks), the rest goes to the run with the most room, in
pieces if necessary, until the budget is reached or all runs are full. No sample is dropped.

THUDM/GLM (blocklm_utils.py, sample_span_in_document) gives the longest document the blanks that the
other documents leave over, and drops the sample if they do not fit. For a text of one document both
methods agree.

In samples of token spans the model sees some tokens as `[dBLOCK]`. There are two kinds, both from
THUDM/GLM (blocklm_utils.py, make_block_data): tokens of Part B, each chosen independently with the
same probability (their targets stay), and tokens of Part A within three tokens of a blank, which
make up a share of the text.

A sample that generates text has one blank: the end of the text, or a long run inside the text.

Its length g is uniform on the integers from int(ratio · n) to n - 2, drawn for each sample. The end
of a text may span several documents, each with its eos and `[CLS]`, of which `[CLS]` carries no
loss. A blank that would begin inside a prompt begins after the prompt instead and is shorter. Only
texts of one document get a run inside the text, which is no longer than that document allows. This
follows THUDM/GLM, blocklm_utils.py, except that it draws one length per batch.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import accumulate
from math import factorial
from typing import NamedTuple

import numpy as np

from trainer.blanks.text import (
    BlankSpans,
    Flags,
    Integers,
    Purpose,
    SampleRng,
    TextRows,
    group_starts,
    happens,
    integers_below,
    running_sums,
    shuffled_order,
)

_MEAN_LENGTH = 3
_MAX_LENGTH = 39
"""Blank lengths follow a Poisson distribution with mean 3, restricted to 1 to 39, as in THUDM/GLM,
blocklm_utils.py (average_block_length 3, max_block_length 40, exclusive)."""
_BITS = 53
_MOVED = 1 << 32
"""The number of the first blank that had to move; no text has that many blanks."""


def _thresholds() -> Integers:
    """Return int64[38]: the cumulative distribution of lengths 1 to 38, in units of 2^-53."""
    weights = [Fraction(_MEAN_LENGTH**k, factorial(k)) for k in range(1, _MAX_LENGTH + 1)]
    sums = list(accumulate(weights))
    return np.array([int(part / sums[-1] * 2**_BITS) for part in sums[:-1]], np.int64)


_THRESHOLDS = _thresholds()


class _DealtBlanks(NamedTuple):
    """Blanks that have a run but no place in it yet."""

    runs: Integers
    sizes: Integers
    numbers: Integers
    """The number of each blank in its row, which is the counter of its random words."""


class _Packing(NamedTuple):
    """The blanks of each run, in random order, and the room that they need."""

    blanks: _DealtBlanks
    ends: Integers
    """The room that a blank and the earlier blanks of its run need, including a gap after each."""


def choose_token_spans(
    runs: BlankSpans, budgets: Integers, *, rng: SampleRng, max_size: int
) -> BlankSpans:
    """Return token spans for the rows that have runs.

    Args:
        runs: the runs of tokens that blanks may cover.
        budgets: the number of tokens to cover in each row, 1 or more. The blanks cover at least
            that number if the runs have room, and exceed it by less than 39. A budget of 1 makes
            one blank.
        rng: the random numbers of the batch.
        max_size: the maximum number of tokens of a blank.
    """
    if not len(runs.rows):
        return runs
    first = group_starts(runs.rows)
    rows = runs.rows[first]
    lengths = np.add.reduceat(runs.sizes, first)
    budgets = np.minimum(budgets[rows], lengths)
    widest = np.minimum(np.maximum.reduceat(runs.sizes, first), max_size)
    owners, numbers, sizes, middles = _draw(rows, budgets, widest=widest, rng=rng)
    turns = integers_below(rng.words(Purpose.SPAN_SHARE, rows), lengths)
    totals = np.bincount(owners, sizes).astype(np.int64)
    offsets = (middles * lengths[owners] // (2 * totals[owners]) + turns[owners]) % lengths[owners]
    ends = np.cumsum(runs.sizes)
    dealt = np.searchsorted(ends, (ends - runs.sizes)[first][owners] + offsets, side="right")
    packing = _pack(_DealtBlanks(dealt, sizes, numbers), runs, rng)
    fits = packing.ends <= runs.sizes[packing.blanks.runs] + 1
    if not fits.all():
        dealt_again = _deal_again(packing.blanks, fits, runs=runs, first=first, budgets=budgets)
        packing = _pack(dealt_again, runs, rng)
    return _place(packing, runs, rng)


def _draw(
    rows: Integers, budgets: Integers, *, widest: Integers, rng: SampleRng
) -> tuple[Integers, Integers, Integers, Integers]:
    """Return each blank's row (index into `rows`), number in the row, size and twice its middle.

    The middle is measured with the blanks of a row laid end to end.
    """
    max_count = int(budgets.max())
    for count in (max_count // 2 + 8, max_count):  # the second always suffices: no blank is empty
        words = rng.stream(Purpose.SPAN_LENGTHS, rows[:, None], np.arange(count)) >> (64 - _BITS)
        sizes = 1 + np.searchsorted(_THRESHOLDS, words.astype(np.int64), side="right")
        sizes = np.minimum(sizes, widest[:, None])
        ends = np.cumsum(sizes, axis=1)
        if (ends[:, -1] >= budgets).all():
            break
    used = ends - sizes < budgets[:, None]
    owners, numbers = np.nonzero(used)
    return owners, numbers, sizes[used], 2 * ends[used] - sizes[used]


def _pack(blanks: _DealtBlanks, runs: BlankSpans, rng: SampleRng) -> _Packing:
    words = rng.stream(Purpose.SPAN_ORDER, runs.rows[blanks.runs], blanks.numbers)
    order = shuffled_order(blanks.runs, words)
    blanks = _DealtBlanks(*(column[order] for column in blanks))
    return _Packing(blanks, running_sums(blanks.runs, blanks.sizes + 1))


def _deal_again(
    blanks: _DealtBlanks, fits: Flags, *, runs: BlankSpans, first: Integers, budgets: Integers
) -> _DealtBlanks:
    """Return the blanks that fit, and blanks in runs with room for the rest of each row's budget.

    `first` has the index of each row's first run.
    """
    dealt, sizes, numbers = blanks
    owners = np.searchsorted(first, dealt, side="right") - 1
    missing = budgets - np.bincount(owners[fits], sizes[fits], len(first)).astype(np.int64)
    room = runs.sizes + 1
    np.subtract.at(room, dealt[fits], sizes[fits] + 1)
    edges = np.append(first, len(room)).tolist()
    moved: list[tuple[int, int, int]] = []
    for owner in np.unique(owners[~fits]).tolist():
        own = slice(edges[owner], edges[owner + 1])
        mine = ~fits & (owners == owner)
        waiting = zip((dealt[mine] - own.start).tolist(), sizes[mine].tolist(), strict=True)
        refilled = _refill(waiting, room[own], missing=int(missing[owner]))
        moved += [(own.start + run, size, _MOVED + i) for i, (run, size) in enumerate(refilled)]
    added = np.array(moved, np.int64).reshape(-1, 3).T
    kept = dealt[fits], sizes[fits], numbers[fits]
    return _DealtBlanks(*map(np.concatenate, zip(kept, added, strict=True)))


def _refill(
    waiting: Iterable[tuple[int, int]], room: Integers, *, missing: int
) -> Iterator[tuple[int, int]]:
    """Yield the run and size of each new blank until no token is missing or no run has room.

    The tokens of a waiting blank that do not fit into its own run go to the run with the most room.
    """
    for own, size in waiting:
        run, left = own, min(size, missing)
        while left > 0 and room.max() > 1:
            taken = min(left, int(room[run]) - 1)
            if taken > 0:
                yield run, taken
                room[run] -= taken + 1
                left -= taken
                missing -= taken
            run = int(room.argmax())


def _place(packing: _Packing, runs: BlankSpans, rng: SampleRng) -> BlankSpans:
    """Return the blanks at random places; every way to fill a run is equally likely.

    If a run has M tokens to spare, as many random integers in [0, M] as it has blanks are sorted:
    the i-th is the number of spare tokens before the i-th blank.
    """
    dealt, sizes, numbers = packing.blanks
    used = np.zeros(len(runs.rows), np.int64)
    used[dealt] = packing.ends  # the last blank of a run wins
    spare = runs.sizes + 1 - used
    words = rng.stream(Purpose.SPAN_PLACES, runs.rows[dealt], numbers)
    shift = dealt << 32
    gaps = np.sort(shift + integers_below(words, spare[dealt] + 1)) - shift
    return BlankSpans(runs.rows[dealt], runs.starts[dealt] + gaps + packing.ends - sizes - 1, sizes)


_NEAR = np.array([-3, -2, -1, 0, 1, 2])
"""Offsets of the three tokens on each side of a blank, as in THUDM/GLM's context_mask_range:
negative offsets count from the blank's first token, the rest from its end."""


class TokenPositions(NamedTuple):
    """Positions of tokens in texts, which index an array [rows, width]."""

    rows: Integers
    columns: Integers


def noise_in_blanks(blanks: BlankSpans, probability: float, rng: SampleRng) -> TokenPositions:
    """Return random tokens of the blanks, each chosen with this probability."""
    owners = np.repeat(np.arange(len(blanks.rows)), blanks.sizes)
    offsets = np.arange(len(owners)) - (np.cumsum(blanks.sizes) - blanks.sizes)[owners]
    rows, columns = blanks.rows[owners], blanks.starts[owners] + offsets
    hit = happens(rng.stream(Purpose.BLOCK_MASK, rows, columns), probability)
    return TokenPositions(rows[hit], columns[hit])


def noise_in_context(
    runs: BlankSpans, blanks: BlankSpans, counts: Integers, rng: SampleRng
) -> TokenPositions:
    """Return random tokens next to blanks, each in the same run as its blank and in no blank.

    Args:
        runs: the runs that contain the blanks.
        blanks: sorted by row, then start.
        counts: the number of tokens to choose in each row, or all if there are fewer.
        rng: the random numbers of the batch.
    """
    # The rows are laid end to end, with more space between them than the offsets reach.
    width = int((runs.starts + runs.sizes).max(initial=0)) + len(_NEAR)
    begins = blanks.rows * width + blanks.starts
    near = begins[:, None] + _NEAR + np.where(_NEAR < 0, 0, blanks.sizes[:, None])
    run_begins = runs.rows * width + runs.starts
    own = np.searchsorted(run_begins, begins, side="right")[:, None] - 1
    inside = (near >= run_begins[own]) & (near < (run_begins + runs.sizes)[own])
    near = np.unique(near[inside])
    before = np.searchsorted(begins, near, side="right") - 1
    covered = (before >= 0) & (near < (begins + blanks.sizes)[before])
    rows, columns = np.divmod(near[~covered], width)
    order = shuffled_order(rows, rng.stream(Purpose.CONTEXT_MASK, rows, columns))
    rows, columns = rows[order], columns[order]
    chosen = running_sums(rows, np.ones_like(rows)) <= counts[rows]
    return TokenPositions(rows[chosen], columns[chosen])


class GenerationBlanks(NamedTuple):
    """Blanks, one per row, and whether each is the end of its text."""

    spans: BlankSpans
    is_end: Flags


def choose_generation_blanks(
    text: TextRows,
    runs: BlankSpans,
    *,
    min_ratio: float,
    infill_prob: float,
    max_size: int,
    rng: SampleRng,
) -> GenerationBlanks:
    """Return one blank for each row that has runs."""
    if not len(runs.rows):
        return GenerationBlanks(runs, np.zeros(0, np.bool_))
    first = group_starts(runs.rows)
    rows, num_runs = runs.rows[first], np.append(first[1:], len(runs.rows)) - first
    lengths = text.lengths[rows]
    max_sizes = np.maximum(lengths - 2, 1)
    min_sizes = np.minimum(np.maximum((min_ratio * lengths).astype(np.int64), 1), max_sizes)
    sizes = min_sizes + integers_below(
        rng.words(Purpose.GENERATION_LENGTH, rows), max_sizes - min_sizes + 1
    )
    is_infill = (num_runs == 1) & happens(rng.words(Purpose.IS_INFILL, rows), infill_prob)
    room = runs.sizes[first]
    infill_sizes = np.minimum(np.minimum(sizes, room), max_size)
    words = rng.words(Purpose.INFILL_START, rows)
    infill_starts = runs.starts[first] + integers_below(words, room - infill_sizes + 1)
    end_starts = _end_starts(text, rows, lengths - sizes)
    starts = np.where(is_infill, infill_starts, end_starts)
    sizes = np.where(is_infill, infill_sizes, lengths - end_starts)
    return GenerationBlanks(BlankSpans(rows, starts, sizes), ~is_infill)


def _end_starts(text: TextRows, rows: Integers, starts: Integers) -> Integers:
    """Return the first predictable token at or after each start, else the last one before it."""
    if text.loss_mask[rows, starts].all():
        return starts
    loss_mask = text.loss_mask[rows]
    columns = np.arange(loss_mask.shape[1])
    from_start = loss_mask & (columns >= starts[:, None])
    last: Integers = columns[-1] - loss_mask[:, ::-1].argmax(axis=1)
    starts = np.where(from_start.any(axis=1), from_start.argmax(axis=1), last)
    return starts
