"""Compares the distribution of blanks with that of THUDM/GLM 4f61ed7.

THUDM/GLM was run to make the figures. `tests/data/glm_blocks.json` is a part of
`../shared/data/golden/blocks_stats.json`: histograms of 20,000 texts of 512 tokens (including
`[CLS]` and eos) that have a sentence end every 20 tokens, and of 2,000 texts of 8 documents of 64
tokens. A χ² test of homogeneity compares each with a histogram of our blanks at a level of 1e-5.
Seeds are fixed, so that the test passes always or never.

Guarantee: Blanks are distributed as the reference's.
"""

import json
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from shards.sampling.batch import Batch, BatchSpans
from tests.trainer.texts import CLS, DBLOCK, EOS, SENTENCE_ENDS, SIZE, SOP, keys_of, maker
from trainer.blanks.batch import GlmBatch
from trainer.blanks.objective import BlankOptions

EXTRACT = Path(__file__).parents[2] / "data" / "glm_blocks.json"
N = 512
TEXTS = 4000
Values = NDArray[Any]

Z = 4.26
"""The number of standard deviations that a normal variable exceeds with a probability of 1e-5."""
CLUSTERED = {"masked_position": 4.2}
"""The factors by which χ² is larger because values are not independent: masked tokens come in
blanks, so their factor is the blanks' mean square length over the mean length."""


@cache
def trials() -> dict[str, dict[str, dict[str, Any]]]:
    histograms: dict[str, dict[str, dict[str, Any]]] = json.loads(EXTRACT.read_bytes())["trials"]
    return histograms


def texts(documents: int) -> Batch:
    """Return texts of equal documents, like those that the reference got."""
    size = N // documents
    random = np.random.default_rng(1)
    one = random.integers(16, SIZE, size)
    one[20:-1:20] = np.flatnonzero(SENTENCE_ENDS)[0]
    one[0], one[-1] = CLS, EOS
    tokens = np.tile(np.tile(one, documents), (TEXTS, 1))
    starts = np.tile(np.arange(documents) * size, TEXTS)
    rows = np.repeat(np.arange(TEXTS), documents)
    return Batch(
        tokens=tokens,
        targets=None,
        loss_mask=tokens != CLS,
        lengths=np.full(TEXTS, N),
        spans=BatchSpans(windows=rows, starts=starts, rows=np.arange(len(rows))),
    )


@cache
def made(documents: int, **values: float) -> GlmBatch:
    options = BlankOptions(**{"short_seq_prob": 0, "block_mask_prob": 0, **values})  # type: ignore[arg-type]  # none is for the flags
    return maker(options, positions=N)(
        texts(documents), keys_of(TEXTS, first=7), sources=np.zeros(TEXTS, np.int64)
    )


class FoundBlanks(NamedTuple):
    """The blanks of rows, found from positions, ordered by row and then by place in the text."""

    rows: Values
    starts: Values
    sizes: Values
    ranks: Values
    """For each blank, the place of its block in Part B."""


@cache
def find_blanks(documents: int, **values: float) -> FoundBlanks:
    batch = made(documents, **values)
    rows, at = np.nonzero((batch.tokens == SOP) & (batch.position_ids[:, 1] == 1))
    ends = np.append(at[1:], 0)
    last = np.append(rows[1:] != rows[:-1], True)
    ends[last] = batch.lengths[rows[last]]
    sizes = ends - at - 1
    ranks = np.arange(len(rows)) - np.searchsorted(rows, rows)
    order = np.lexsort((batch.position_ids[rows, 0, at], rows))
    masks = batch.position_ids[rows, 0, at][order]
    rows, sizes, ranks = rows[order], sizes[order], ranks[order]
    hidden = np.cumsum(sizes - 1) - (sizes - 1)
    starts = masks + hidden - hidden[np.searchsorted(rows, rows)]
    return FoundBlanks(rows, starts, sizes, ranks)


def masked_tokens(b: GlmBatch, f: FoundBlanks) -> Values:
    return np.bincount(f.rows, f.sizes, len(b.sep))


def blanks(b: GlmBatch, f: FoundBlanks) -> Values:
    return np.bincount(f.rows, minlength=len(b.sep))


def gaps(_: GlmBatch, f: FoundBlanks) -> Values:
    between = f.starts[1:] - (f.starts + f.sizes)[:-1]
    return np.minimum(between[f.rows[1:] == f.rows[:-1]], 60)


def masked_position(_: GlmBatch, f: FoundBlanks) -> Values:
    within = np.arange(f.sizes.sum()) - np.repeat(np.cumsum(f.sizes) - f.sizes, f.sizes)
    return np.repeat(f.starts, f.sizes) + within


def order_correlation(_: GlmBatch, f: FoundBlanks) -> Values:
    places = np.arange(len(f.rows)) - np.searchsorted(f.rows, f.rows)
    counts = np.bincount(f.rows)[f.rows]
    middle = (counts - 1) / 2
    products = np.bincount(f.rows, (places - middle) * (f.ranks - middle))
    numbers = np.bincount(f.rows)
    return products / (numbers * (numbers**2 - 1) / 12)


MEASURES: dict[str, Callable[[GlmBatch, FoundBlanks], Values]] = {
    "blank_length": lambda _, f: f.sizes,
    "masked_tokens": masked_tokens,
    "blanks": blanks,
    "output_length": lambda b, _: b.lengths,
    "gap_between_blanks": gaps,
    "blank_start": lambda _, f: f.starts,
    "masked_position": masked_position,
    "order_correlation": order_correlation,
}


def binned(values: Values, histogram: dict[str, Any]) -> Values:
    """Return the counts in the reference's bins, after checking that no value is outside."""
    bins = histogram["bins"]
    # A value on an edge may be below the edge by a rounding error.
    places = np.floor((values - histogram["first"]) / histogram["step"] + 1e-9).astype(int)
    places[np.isclose(values, histogram["first"] + bins * histogram["step"])] = bins - 1
    assert ((places >= 0) & (places < bins)).all()
    return np.bincount(places, minlength=bins)


def counts_of(histogram: dict[str, Any]) -> Values:
    counts = np.zeros(histogram["bins"])
    for place, count in histogram["counts"].items():
        counts[int(place)] = count
    return counts


def chi2(left: Values, right: Values) -> tuple[float, int]:
    """Return χ² of two histograms, and its degrees of freedom; small adjacent bins are joined."""
    both = left + right
    scale = min(left.sum(), right.sum()) / both.sum()
    groups, total = [0], 0.0
    for count in both[:-1]:
        total += count * scale
        is_full = total >= 8
        groups.append(groups[-1] + 1 if is_full else groups[-1])
        total = 0.0 if is_full else total
    table = np.array([np.bincount(groups, side) for side in (left, right)])
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    used = expected > 0
    return float(((table - expected)[used] ** 2 / expected[used]).sum()), groups[-1]


def limit(degrees: int) -> float:
    """Return the χ² that is exceeded with a probability of 1e-5 (Wilson and Hilferty, 1931)."""
    part = 2 / (9 * max(degrees, 1))
    return float(max(degrees, 1) * (1 - part + Z * part**0.5) ** 3)


def check(values: Values, trial: str, name: str) -> None:
    histogram = trials()[trial][name]
    statistic, degrees = chi2(counts_of(histogram), binned(values, histogram))
    assert statistic / CLUSTERED.get(name, 1) < limit(degrees)


SPANS, SENTENCES = {"bert_prob": 1, "sentence_prob": 0}, {"bert_prob": 0, "sentence_prob": 1}
TRIALS: Mapping[str, tuple[int, Mapping[str, float], Collection[str]]] = {
    "bert_512": (1, SPANS, MEASURES),
    # For four blanks the correlation is a multiple of 0.2, which is on the edges of the histogram's
    # bins.
    "sentence_512": (1, SENTENCES, [name for name in MEASURES if name != "order_correlation"]),
    # The places of blanks differ: the reference gives the first document three times its share.
    "bert_packed_8": (
        8,
        SPANS,
        ["blank_length", "masked_tokens", "blanks", "output_length", "order_correlation"],
    ),
}


@pytest.mark.parametrize(
    ("trial", "name"), [(trial, name) for trial, (*_, names) in TRIALS.items() for name in names]
)
def test_blanks(trial: str, name: str) -> None:
    documents, values, _ = TRIALS[trial]
    check(MEASURES[name](made(documents, **values), find_blanks(documents, **values)), trial, name)


@pytest.mark.parametrize(("infill", "trial"), [(0, "gpt_suffix_512"), (1, "gpt_infill_512")])
def test_generation(infill: int, trial: str) -> None:
    values = {"bert_prob": 0, "sentence_prob": 0, "infill_prob": infill}
    batch = made(1, **values)
    sizes = N + 1 - batch.sep
    check(sizes / N, trial, "generation_share")
    check(batch.lengths, trial, "output_length")
    check(np.full(TEXTS, 1 - infill), trial, "kind_suffix")
    if infill:
        spare = N - 2 - sizes
        starts = find_blanks(1, **values).starts - 1
        check((starts / np.maximum(spare, 1))[spare > 0], trial, "infill_start")


def test_dblock() -> None:
    clean, noisy = made(1, **SPANS), made(1, block_mask_prob=0.1, **SPANS)
    inputs = (clean.loss_mask & (clean.tokens != SOP)).sum(axis=1)
    shares = (noisy.tokens == DBLOCK).sum(axis=1) / inputs
    check(shares, "dblock_512", "replaced_share_per_sample")
