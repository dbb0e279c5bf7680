"""The distribution of blanks beside that of THUDM/GLM 4f61ed7, which was run to make the figures.

`tests/data/glm_blocks.json` is a part of `../shared/data/golden/blocks_stats.json`: histograms of
20,000 texts of 512 tokens, `[CLS]` and eos among them, with a sentence end every 20 tokens, and of
2,000 texts of 8 documents of 64. Each is held against as many of ours by a χ² test of homogeneity
at a level of 1e-5; seeds are fixed, so that it passes always or never.
"""

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from shards.batch import Batch, Pieces
from tests.trainer.texts import CLS, DBLOCK, EOS, SENTENCE_ENDS, SIZE, SOP, keys_of, maker
from trainer.blanks.blanks import BlankOptions
from trainer.blanks.blocks import GlmBatch
from trainer.blanks.sample_rng import Purpose, SampleRng, integers_below

EXTRACT = Path(__file__).parents[2] / "data" / "glm_blocks.json"
SHARED = Path(__file__).parents[3] / ".." / "shared" / "data" / "golden" / "blocks_stats.json"
N = 512
TEXTS = 4000
Values = NDArray[Any]

Z = 4.26
"""The standard normal beyond which 1e-5 lies."""
CLUSTERED = {"masked_position": 4.2}
"""Masked tokens come in blanks, so that χ² is larger by their mean square length over the mean."""


@cache
def trials() -> dict[str, dict[str, dict[str, Any]]]:
    histograms: dict[str, dict[str, dict[str, Any]]] = json.loads(EXTRACT.read_bytes())["trials"]
    return histograms


def texts(documents: int) -> Batch:
    """Texts of equal documents, as the reference was given."""
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
        pieces=Pieces(windows=rows, starts=starts, rows=np.arange(len(rows))),
    )


@cache
def made(documents: int, **values: float) -> GlmBatch:
    options = BlankOptions(**{"short_seq_prob": 0, "block_mask_prob": 0, **values})  # type: ignore[arg-type]  # none is for the flags
    return maker(options, positions=N)(
        texts(documents), keys_of(TEXTS, first=7), sources=np.zeros(TEXTS, np.int64)
    )


class FoundBlanks(NamedTuple):
    """Blanks of rows, read back from positions: by row, then place in the text."""

    rows: Values
    starts: Values
    sizes: Values
    ranks: Values
    """Place of its block in Part B."""


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


def _places(f: FoundBlanks) -> tuple[Values, Values]:
    """Place in the text of each blank, and the number of blanks in its row."""
    first = np.searchsorted(f.rows, f.rows)
    return np.arange(len(f.rows)) - first, np.bincount(f.rows)[f.rows]


def first_block_rank(_: GlmBatch, f: FoundBlanks) -> Values:
    places, counts = _places(f)
    return (places / (counts - 1))[f.ranks == 0]


def order_correlation(_: GlmBatch, f: FoundBlanks) -> Values:
    places, counts = _places(f)
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
    "first_block_rank": first_block_rank,
    "order_correlation": order_correlation,
}


def binned(values: Values, histogram: dict[str, Any]) -> Values:
    """Counts in the bins of the reference's histogram; of a value outside there is none."""
    bins = histogram["bins"]
    # A value on an edge may lie a rounding error below it.
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
    """χ² of two histograms and its degrees of freedom; neighbouring bins of few are one."""
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
    """χ² that is exceeded with a probability of 1e-5 (Wilson and Hilferty, 1931)."""
    part = 2 / (9 * max(degrees, 1))
    return float(max(degrees, 1) * (1 - part + Z * part**0.5) ** 3)


def check(values: Values, trial: str, name: str) -> None:
    histogram = trials()[trial][name]
    statistic, degrees = chi2(counts_of(histogram), binned(values, histogram))
    assert statistic / CLUSTERED.get(name, 1) < limit(degrees)


@pytest.mark.parametrize("name", list(MEASURES))
def test_token_spans(name: str) -> None:
    values = {"bert_prob": 1, "sentence_prob": 0}
    check(MEASURES[name](made(1, **values), find_blanks(1, **values)), "bert_512", name)


# Of four blanks the correlation is a multiple of 0.2: on the edges of the histogram's bins.
@pytest.mark.parametrize("name", [name for name in MEASURES if name != "order_correlation"])
def test_sentences(name: str) -> None:
    values = {"bert_prob": 0, "sentence_prob": 1}
    check(MEASURES[name](made(1, **values), find_blanks(1, **values)), "sentence_512", name)


PACKED: Sequence[str] = (
    "blank_length",
    "masked_tokens",
    "blanks",
    "output_length",
    "first_block_rank",
    "order_correlation",
)


@pytest.mark.parametrize("name", PACKED)
def test_token_spans_of_eight_documents(name: str) -> None:
    """Where they lie differs: the reference gives the first document three times its share."""
    values = {"bert_prob": 1, "sentence_prob": 0}
    check(MEASURES[name](made(8, **values), find_blanks(8, **values)), "bert_packed_8", name)


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
    values = {"bert_prob": 1, "sentence_prob": 0}
    clean, noisy = made(1, **values), made(1, block_mask_prob=0.1, **values)
    inputs = (clean.loss_mask & (clean.tokens != SOP)).sum(axis=1)
    shares = (noisy.tokens == DBLOCK).sum(axis=1) / inputs
    check(shares, "dblock_512", "replaced_share_per_sample")


def test_short_texts() -> None:
    """The reference draws one length for 4 texts and cuts K parts of each: ours count K times."""
    words = SampleRng(keys_of(TEXTS, first=7)).words(Purpose.SHORT_LENGTH, np.arange(TEXTS))
    sizes = 32 + integers_below(words, np.full(TEXTS, N - 33))
    batch = made(1, bert_prob=1, sentence_prob=0, short_seq_prob=1)
    lengths = batch.sep + masked_tokens(
        batch, f := find_blanks(1, bert_prob=1, sentence_prob=0, short_seq_prob=1)
    )
    lengths = lengths - blanks(batch, f)
    histogram = trials()["short_512"]["sample_length"]
    ours = np.zeros(histogram["bins"])
    np.add.at(ours, (lengths / histogram["step"]).astype(int), (N - 1) // sizes)
    theirs = counts_of(histogram)
    distance = np.abs(ours / ours.sum() - theirs / theirs.sum()).sum() / 2
    assert distance < 0.1  # two runs of the reference are 0.066 apart


def test_the_test_can_fail() -> None:
    """Blanks of 3.3 tokens in place of 3.16, places off by four, half a blank too many."""
    values = {"bert_prob": 1, "sentence_prob": 0}
    f = find_blanks(1, **values)
    histograms = trials()["bert_512"]
    longer = np.where(np.arange(len(f.sizes)) % 7 == 0, f.sizes + 1, f.sizes)
    for name, wrong in {
        "blank_length": longer,
        "blank_start": np.minimum(f.starts + 4, N - 1),
        "blanks": blanks(made(1, **values), f) + (np.arange(TEXTS) % 2),
    }.items():
        statistic, degrees = chi2(counts_of(histograms[name]), binned(wrong, histograms[name]))
        assert statistic > limit(degrees)


@pytest.mark.skipif(
    not SHARED.is_file(), reason="the reference's figures are not at ../shared/data"
)
def test_the_extract_is_of_the_figures() -> None:
    whole = json.loads(SHARED.read_bytes())["trials"]
    for trial, histograms in trials().items():
        for name, histogram in histograms.items():
            other = whole[trial]["histograms"][name]
            assert counts_of(histogram).tolist() == other["counts"]
            edges = histogram["first"] + histogram["step"] * np.arange(histogram["bins"] + 1)
            assert edges == pytest.approx(other["edges"])
