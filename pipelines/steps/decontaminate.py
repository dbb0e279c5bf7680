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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.read.input_format import InputFormat
from pipelines.read.record import Damage, Record, strings_in
from pipelines.read.value import text_of
from pipelines.segments.rows import FilterResult
from pipelines.steps.listing import read_whole
from pipelines.steps.step import Step, reasons_where
from pipelines.steps.units import Units, unit_batches, units
from shards.errors import UserError

WORDS = 13
"""Words in a run (GPT-3, NeMo Curator; datatrove takes 12)."""
FEWEST_WORDS = 8
"""A shorter item is ignored: everyday phrases would drop everything (GPT-3's least N)."""
CHARACTERS_PER_WORD = 1.75

CONTAMINATED = "contaminated"
CONTAMINATION = pa.field("contamination.ngrams", pa.int32())


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
        counts = []
        for batch in unit_batches(texts):
            starts = self._starts(batch)
            text = np.searchsorted(batch.ends, starts, side="right")
            left = batch.ends[text] - starts
            hits = []  # by length of runs, int64[hits, 2]: index of the text, hash of the run
            for length, hashes in self.runs.items():
                inside = np.flatnonzero(left >= length)
                runs = batch.runs_at(starts[inside], length)
                found = _isin(runs, hashes)
                pairs = np.stack([text[inside[found]], runs[found].view(np.int64)], 1)
                hits.append(np.unique(pairs, axis=0))
            texts_hit = np.concatenate(hits)[:, 0] if hits else np.zeros(0, np.int64)
            counts.append(np.bincount(texts_hit, minlength=len(batch.ends)))
        return np.concatenate([np.zeros(0, np.int32), *counts]).astype(np.int32)

    def _starts(self, batch: Units) -> np.ndarray:
        """Return the places (int64) at which the head of a run stands: there are few elsewhere."""
        heads = batch.runs(self.head)
        table, shift = self._filter
        places = np.flatnonzero(table[(heads >> shift).view(np.int64)])
        starts: np.ndarray = places[_isin(heads[places], self.heads)]
        return starts

    @cached_property
    def _filter(self) -> tuple[np.ndarray, np.uint64]:
        """A table of the leading bits that occur in heads, and the shift that extracts them."""
        bits = min(24, max(16, len(self.heads).bit_length() + 3))
        shift = np.uint64(64 - bits)
        table = np.zeros(1 << bits, bool)
        table[(self.heads >> shift).view(np.int64)] = True
        return table, shift


def load_contamination(paths: Sequence[str], *, n: int = WORDS) -> Contamination:
    """Return the runs of the items in some files.

    Args:
        paths: JSON lines, JSON arrays or Parquet. An item is each text in a record, in any field
            and however deeply nested: a question, each of its choices. Or plain text with an item
            on each line. Files may be compressed; folders and globs work too.
        n: Words in a run.

    Raises:
        UserError: A file cannot be read, an item has no text, or no item is long enough.
    """
    if n < 1:
        raise UserError(f"Runs of {n} words cannot be looked for: give at least 1, for example 13.")
    reading = InputFormat()  # a table is read whole, whatever its columns are
    texts = [text for path, item in read_whole(paths, reading) for text in _texts(path, item)]
    found = [_runs(text, n) for text in texts]
    if not any(length for length, *_ in found):
        raise UserError(
            f"{', '.join(paths)}: none of the {len(texts)} items has {min(n, FEWEST_WORDS)} words, "
            "so there is nothing to look for. In plain text each line is an item: put every item "
            "on a single line."
        )
    by_length: dict[int, list[np.ndarray]] = {}
    for length, hashes, _ in found:
        if length:
            by_length.setdefault(length, []).append(hashes)
    runs = {length: np.unique(np.concatenate(each)) for length, each in sorted(by_length.items())}
    return Contamination(
        runs=runs,
        head=min(n, FEWEST_WORDS),
        heads=np.unique(np.concatenate([heads for _, _, heads in found])),
        items=len(found),
        skipped=sum(not length for length, *_ in found),
        fingerprint=_fingerprint(runs),
    )


def _texts(path: str, item: Record | Damage) -> list[str]:
    if isinstance(item, Damage):
        raise UserError(
            f"{path}: the benchmark is damaged at byte {item.offset} ({item.reason}): "
            f"{item.raw[:60]!r}. Fetch the file again, or leave it out."
        )
    texts = [text for _, _, text in strings_in(_decoded(item.value))]
    if not texts:
        raise UserError(
            f"{path}: no text in the item at {item.offset}: {item.head[:60]!r}. Expected was text "
            "in at least one field, or in a list or an object in one."
        )
    return texts


def _decoded(value: Any) -> Any:
    """Return a value in which bytes that are UTF-8 are text, as some writers of Parquet have it."""
    if isinstance(value, Mapping):
        return {key: _decoded(each) for key, each in value.items()}
    return [*map(_decoded, value)] if isinstance(value, list | tuple) else text_of(value)


def _runs(text: str, n: int) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the units in a run of an item, 0 for a short one; hashes of its runs and heads."""
    item = units([text])
    count = len(item.hashes)
    scale = CHARACTERS_PER_WORD if 2 * int(item.single.sum()) > count else 1
    least = min(n, FEWEST_WORDS)
    length = min(count, round(n * scale))
    if length < round(least * scale):
        return 0, item.hashes[:0], item.hashes[:0]
    runs = item.runs(length)
    return length, runs, item.runs(least)[: len(runs)]


def _isin(values: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    places = np.minimum(np.searchsorted(hashes, values), len(hashes) - 1)
    same: np.ndarray = hashes[places] == values
    return same


def _fingerprint(runs: Mapping[int, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for length, hashes in runs.items():
        digest.update(f"{length}:{len(hashes)}:".encode())
        digest.update(hashes.astype("<u8").tobytes())
    return digest.hexdigest()


class DecontaminateStep(Step):
    """Adds how many of the benchmarks' n-grams each text holds; drops texts that hold any."""

    name = "decontaminate"
    reasons = (CONTAMINATED,)
    fields = (CONTAMINATION,)

    def __init__(self, paths: Sequence[str]) -> None:
        """Load the benchmarks.

        Args:
            paths: Their texts, as --decontaminate takes them.

        Raises:
            UserError: As load_contamination.
        """
        self._benchmarks = load_contamination(paths)
        self.fingerprints = {"decontaminate": self._benchmarks.fingerprint}

    def __call__(self, batch: pa.RecordBatch) -> FilterResult:
        """Add the count; drop texts that hold any."""
        hits = self._benchmarks.hits(batch["text"].to_pylist())
        batch = batch.append_column(CONTAMINATION.name, pa.array(hits, CONTAMINATION.type))
        return FilterResult(batch, reasons_where(hits > 0, CONTAMINATED))
