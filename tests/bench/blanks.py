"""Measures the speed of turning GLM windows into rows with blanks."""

import statistics
import time
from collections.abc import Mapping

import numpy as np

from shards.sampling.batch import Batch, BatchSpans
from tests.bench.table import render
from trainer.blanks.objective import BlankInfilling, BlankOptions

POSITIONS = 512
BATCH_SIZES = (16, 64)
ROUNDS = 9
SECONDS = 0.3
"""The length of a round in seconds."""
SPECIAL = {"eos": 0, "cls": 1, "mask": 2, "smask": 3, "gmask": 4, "sop": 5, "eop": 6, "dblock": 7}
SIZE = 50_048
STOP = 8
"""The only token that ends a sentence; every twentieth token is this one."""

CASES: Mapping[str, tuple[int, Mapping[str, float]]] = {
    "bert": (1, {"bert_prob": 1, "sentence_prob": 0}),
    "bert_packed3": (3, {"bert_prob": 1, "sentence_prob": 0}),
    "sentence": (1, {"bert_prob": 0, "sentence_prob": 1}),
    "gpt_suffix": (1, {"bert_prob": 0, "sentence_prob": 0, "infill_prob": 0}),
    "gpt_infill": (1, {"bert_prob": 0, "sentence_prob": 0, "infill_prob": 1}),
    "mix": (1, {"block_mask_prob": 0.1, "short_seq_prob": 0.02}),
}
"""The number of documents per window, and the options for blanks, by name."""


def measure() -> str:
    """Return the table of samples per second of CPU time, summed over all threads."""
    rows = []
    for name, (documents, values) in CASES.items():
        options = BlankOptions(**{"block_mask_prob": 0, "short_seq_prob": 0, **values})  # type: ignore[arg-type]  # none of them is for the flags
        for batch_size in BATCH_SIZES:
            rates = _rates(_batch(documents, batch_size), options)
            median = statistics.median(rates)
            spread = f"{min(rates):,.0f}-{max(rates):,.0f}"
            rows.append([name, str(batch_size), f"{median:,.0f}", spread])
    what = f"texts of {POSITIONS} tokens, median of {ROUNDS} rounds of {SECONDS} s"
    head = ("objective", "batch", "samples/CPU s", "range")
    return f"{what}\n{render(head, rows)}"


def _batch(documents: int, batch_size: int) -> Batch:
    size = POSITIONS // documents
    tokens = np.random.default_rng(0).integers(9, SIZE, (batch_size, size * documents))
    starts = np.arange(documents) * size
    for start in starts.tolist():
        tokens[:, start + 20 : start + size : 20] = STOP
        tokens[:, start], tokens[:, start + size - 1] = SPECIAL["cls"], SPECIAL["eos"]
    return Batch(
        tokens=tokens,
        targets=None,
        loss_mask=tokens != SPECIAL["cls"],
        lengths=np.full(batch_size, tokens.shape[1]),
        spans=BatchSpans(
            windows=np.repeat(np.arange(batch_size), documents),
            starts=np.tile(starts, batch_size),
            rows=np.arange(batch_size * documents),
        ),
    )


def _rates(batch: Batch, options: BlankOptions) -> list[float]:
    ends = np.arange(SIZE) == STOP
    maker = BlankInfilling(SPECIAL, options, max_positions=POSITIONS, sentence_ends=ends)
    number = len(batch.lengths)
    sources = np.zeros(number, np.int64)
    rates, first = [], 0
    for _ in range(ROUNDS + 1):
        num_samples, begin, cpu = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() - begin < SECONDS:
            keys = np.arange(first, first + number, dtype=np.uint64)
            maker(batch, keys, sources=sources)
            first, num_samples = first + number, num_samples + number
        rates.append(num_samples / (time.process_time() - cpu))
    return rates[1:]  # the first round warms up
