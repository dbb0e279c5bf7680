"""Finds documents that contain parts of benchmarks, by the n-grams that both share.

The published rule is GPT-3's (Brown et al. 2020, arXiv 2005.14165, appendix C), which NeMo Curator
and Megatron-Turing NLG adopted. It compares n-grams of 13 words, in lower case and without
punctuation, and a shorter item as a whole if the item has at least 8 words. Here a document that
contains such an n-gram is dropped, because a corpus has many documents, and nobody wrote a text
with a hole in it. GPT-3 differs in three ways: it cuts out 200 characters around the n-gram
instead, drops a document that is cut into more than 10 pieces, and ignores n-grams that more than
10 documents contain, which takes a second pass.

For text without spaces there is no established number of *characters*. The words that jieba finds
in Chinese prose have 1.76 characters on average (105,296 words of technical and literary text), so
13 words are 23 characters, and 8 words are 14. An item counts as Chinese (or Japanese, Thai, ...)
if more than half of its units are such characters.
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
from pipelines.steps.rule_files import read_rule_files
from pipelines.steps.step import Step, reasons_where
from pipelines.steps.units import Units, unit_batches, units
from shards.errors import UserError

WORDS = 13
"""The number of words in an n-gram, as in GPT-3 and NeMo Curator; datatrove uses 12."""
MIN_WORDS = 8
"""Items with fewer words are ignored, since common phrases would match (GPT-3's minimum N)."""
CHARACTERS_PER_WORD = 1.75

CONTAMINATED = "contaminated"
CONTAMINATION = pa.field("contamination.ngrams", pa.int32())


@dataclass(frozen=True, kw_only=True)
class Contamination:
    """The n-grams of some benchmarks."""

    ngrams: Mapping[int, np.ndarray]
    """Hashes (uint64, sorted, distinct) by the number of units of an n-gram, ascending."""
    head: int
    """The number of units in a head. A head is the beginning of an n-gram."""
    heads: np.ndarray
    """Hashes (uint64, sorted, distinct) of the heads of all n-grams."""
    items: int
    """The number of items in the files."""
    skipped: int
    """The number of items that are too short."""
    fingerprint: str
    """SHA-256 of the n-grams, in hexadecimal; the order of the texts does not matter."""

    def hits(self, texts: Sequence[str]) -> np.ndarray:
        """Return the number of distinct n-grams of the benchmarks in each text (int32[texts])."""
        counts = []
        for batch in unit_batches(texts):
            starts = self._starts(batch)
            text = np.searchsorted(batch.ends, starts, side="right")
            left = batch.ends[text] - starts
            hits = []  # by length of n-grams, int64[hits, 2]: index of the text, hash
            for length, hashes in self.ngrams.items():
                inside = np.flatnonzero(left >= length)
                ngrams = batch.ngrams_at(starts[inside], length)
                found = _isin(ngrams, hashes)
                pairs = np.stack([text[inside[found]], ngrams[found].view(np.int64)], 1)
                hits.append(np.unique(pairs, axis=0))
            texts_hit = np.concatenate(hits)[:, 0] if hits else np.zeros(0, np.int64)
            counts.append(np.bincount(texts_hit, minlength=len(batch.ends)))
        return np.concatenate([np.zeros(0, np.int32), *counts]).astype(np.int32)

    def _starts(self, batch: Units) -> np.ndarray:
        """Return the places (int64) of heads, which are the places where an n-gram may begin."""
        heads = batch.ngrams(self.head)
        table, shift = self._filter
        places = np.flatnonzero(table[(heads >> shift).view(np.int64)])
        starts: np.ndarray = places[_isin(heads[places], self.heads)]
        return starts

    @cached_property
    def _filter(self) -> tuple[np.ndarray, np.uint64]:
        """A table of the leading bits of all heads, and the shift that extracts these bits."""
        bits = min(24, max(16, len(self.heads).bit_length() + 3))
        shift = np.uint64(64 - bits)
        table = np.zeros(1 << bits, bool)
        table[(self.heads >> shift).view(np.int64)] = True
        return table, shift


def load_contamination(paths: Sequence[str], *, n: int = WORDS) -> Contamination:
    """Return the n-grams of the items in some files.

    Args:
        paths: JSON lines, JSON arrays, Parquet, or plain text with one item per line. In records,
            each text in any field is an item, however deeply nested, such as a question and each
            of its choices. Files may be compressed; folders and globs work too.
        n: The number of words in an n-gram.

    Raises:
        UserError: A file cannot be read, an item has no text, or no item is long enough.
    """
    if n < 1:
        raise UserError(f"N-grams of {n} words do not exist: give at least 1, for example 13.")
    input_format = InputFormat()  # all columns of a table are read
    texts = [
        text for path, item in read_rule_files(paths, input_format) for text in _texts(path, item)
    ]
    found = [_ngrams_of(text, n) for text in texts]
    if not any(length for length, *_ in found):
        raise UserError(
            f"{', '.join(paths)}: none of the {len(texts)} items has {min(n, MIN_WORDS)} words, "
            "so there is nothing to look for. In plain text each line is an item: write every item "
            "on a single line."
        )
    by_length: dict[int, list[np.ndarray]] = {}
    for length, hashes, _ in found:
        if length:
            by_length.setdefault(length, []).append(hashes)
    ngrams = {size: np.unique(np.concatenate(each)) for size, each in sorted(by_length.items())}
    return Contamination(
        ngrams=ngrams,
        head=min(n, MIN_WORDS),
        heads=np.unique(np.concatenate([heads for _, _, heads in found])),
        items=len(found),
        skipped=sum(not length for length, *_ in found),
        fingerprint=_fingerprint(ngrams),
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
            f"{path}: the item at {item.offset} has no text: {item.head[:60]!r}. Expected text in "
            "at least one field, or in a list or an object of a field."
        )
    return texts


def _decoded(value: Any) -> Any:
    """Return a value with UTF-8 bytes decoded, since some Parquet writers store texts as bytes."""
    if isinstance(value, Mapping):
        return {key: _decoded(each) for key, each in value.items()}
    return [*map(_decoded, value)] if isinstance(value, list | tuple) else text_of(value)


def _ngrams_of(text: str, n: int) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the length (0 if an item is too short), hashes and heads of the item's n-grams."""
    item = units([text])
    count = len(item.hashes)
    scale = CHARACTERS_PER_WORD if 2 * int(item.single.sum()) > count else 1
    least = min(n, MIN_WORDS)
    length = min(count, round(n * scale))
    if length < round(least * scale):
        return 0, item.hashes[:0], item.hashes[:0]
    ngrams = item.ngrams(length)
    return length, ngrams, item.ngrams(least)[: len(ngrams)]


def _isin(values: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    places = np.minimum(np.searchsorted(hashes, values), len(hashes) - 1)
    same: np.ndarray = hashes[places] == values
    return same


def _fingerprint(ngrams: Mapping[int, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for length, hashes in ngrams.items():
        digest.update(f"{length}:{len(hashes)}:".encode())
        digest.update(hashes.astype("<u8").tobytes())
    return digest.hexdigest()


class DecontaminateStep(Step):
    """Adds the number of the benchmarks' n-grams in each text; drops texts that have any."""

    name = "decontaminate"
    reasons = (CONTAMINATED,)
    fields = (CONTAMINATION,)

    def __init__(self, paths: Sequence[str]) -> None:
        """Load the benchmarks.

        Args:
            paths: Files of benchmarks, as in --decontaminate.

        Raises:
            UserError: The benchmarks cannot be loaded; see load_contamination.
        """
        self._benchmarks = load_contamination(paths)
        self.fingerprints = {"decontaminate": self._benchmarks.fingerprint}

    def __call__(self, batch: pa.RecordBatch) -> FilterResult:
        """Add the count; drop texts with any n-gram of the benchmarks."""
        hits = self._benchmarks.hits(batch["text"].to_pylist())
        batch = batch.append_column(CONTAMINATION.name, pa.array(hits, CONTAMINATION.type))
        return FilterResult(batch, reasons_where(hits > 0, CONTAMINATED))
