"""The chain that every batch goes through: clean, langid, tokenize, fingerprint.

Models are loaded once per process, when the chain is built; a stage is RecordBatch -> Verdict.
"""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.clean import repair
from pipelines.dedup import text_hashes
from pipelines.document import NAME, Stage, Verdict
from pipelines.langid import load_identifier, parse_languages
from pipelines.options import Options
from pipelines.tokenizer import load_tokenizer


class Chain:
    """The stages of a run with their models."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.languages = None if "all" in options.languages else parse_languages(options.languages)
        model = Path(options.lid_model) if options.lid_model else None
        self.identifier = load_identifier(model, chars=options.lid_chars)
        self.tokenizer = load_tokenizer(options.tokenizer)

    @property
    def stages(self) -> Sequence[Stage]:
        """The stages in order; each drops or quarantines before the next one works."""
        return (clean, self.langid, self.tokenize, fingerprint)

    @property
    def facts(self) -> Mapping[str, Any]:
        """What stands for the options that are paths: the fingerprints of the files behind them."""
        return {
            "tokenizer": self.tokenizer.fingerprint,
            "lid_model": self.identifier.fingerprint,
        }

    @property
    def engines(self) -> Mapping[str, str]:
        """The libraries that decide bytes, with their versions."""
        return {"langid": self.identifier.engine, "tokenizer": self.tokenizer.engine}

    def langid(self, batch: pa.RecordBatch) -> Verdict:
        """Add language and score; drop what is in none of the languages asked for, or unsure."""
        labels, scores = self.identifier.identify(batch["text"].to_pylist())
        unsure = scores < np.float32(self.options.language_threshold)
        reasons = [
            "language" if self.languages is not None and label not in self.languages
            else "language-score" if low else None
            for label, low in zip(labels, unsure.tolist(), strict=True)
        ]  # fmt: skip
        batch = _with(batch, "language", pa.array(labels, pa.large_string()).cast(NAME))
        return Verdict(_with(batch, "score", pa.array(scores)), pa.array(reasons, pa.string()))

    def tokenize(self, batch: pa.RecordBatch) -> Verdict:
        """Add the tokens of each text, closed by eos; quarantine what the tokenizer cannot take."""
        tokens, lengths, failures = self.tokenizer.encode_batch(batch["text"].to_pylist())
        ends = np.cumsum(lengths)
        eos = self.tokenizer.special["eos"]
        values = np.insert(tokens, ends, np.array(eos, tokens.dtype))
        offsets = np.concatenate(([0], ends + np.arange(1, len(ends) + 1)))
        column = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(values))
        reasons: list[str | None] = [None] * batch.num_rows
        for index, _ in failures:
            reasons[index] = "tokenizer-failed"
        return Verdict(_with(batch, "tokens", column), pa.array(reasons, pa.string()))


def clean(batch: pa.RecordBatch) -> Verdict:
    """Repair the Unicode of each text and say where that changed it; drop what ends up empty."""
    before = batch["text"].to_pylist()
    after = [repair(text) for text in before]
    changed = [old is not new and old != new for old, new in zip(before, after, strict=True)]
    if any(changed):
        new = pa.array(itertools.compress(after, changed), pa.large_string())
        texts = pc.replace_with_mask(batch["text"], pa.array(changed), new)
        batch = batch.set_column(batch.schema.get_field_index("text"), "text", texts)
    reasons = [None if text and not text.isspace() else "empty" for text in after]
    batch = _with(batch, "repaired", pa.array(changed, pa.bool_()))
    return Verdict(batch, pa.array(reasons, pa.string()))


def fingerprint(batch: pa.RecordBatch) -> Verdict:
    """Add the 128-bit hash of each text for exact deduplication, and let the text go."""
    high, low = text_hashes(batch["text"].to_pylist())
    batch = batch.remove_column(batch.schema.get_field_index("text"))
    batch = _with(batch, "hash_high", pa.array(high))
    return Verdict(_with(batch, "hash_low", pa.array(low)), pa.nulls(batch.num_rows, pa.string()))


def judge(batch: pa.RecordBatch, stages: Sequence[Stage]) -> tuple[pa.RecordBatch, list[Verdict]]:
    """Return the rows that pass every stage, and per stage those that do not, with reasons."""
    gone = []
    for stage in stages:
        verdict = stage(batch)
        batch, fallen = split_verdict(verdict)
        gone.append(fallen)
    return batch, gone


def split_verdict(verdict: Verdict) -> tuple[pa.RecordBatch, Verdict]:
    """Return the rows that stay, and the others with their reasons."""
    if verdict.reasons.null_count == len(verdict.reasons):
        return verdict.batch, Verdict(verdict.batch.slice(0, 0), verdict.reasons.slice(0, 0))
    fallen = pc.is_valid(verdict.reasons)
    return verdict.batch.filter(pc.invert(fallen)), Verdict(
        verdict.batch.filter(fallen), verdict.reasons.filter(fallen)
    )


def _with(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    return batch.append_column(name, column)
