"""The chain of stages that every batch goes through; those in brackets are optional.

    [block] ─▶ clean ─▶ langid and quality ─▶ [decontaminate] ─▶ [mask] ─▶ tokenize ─▶ fingerprint

Models are loaded once per process, when the chain is built; a stage is RecordBatch -> Verdict.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.compiled import compiling
from pipelines.corpus.code import OWN_CODE
from pipelines.corpus.options import Options
from pipelines.dedup.fingerprint import Fingerprinter, load_fingerprinter
from pipelines.dedup.sieve import pack_signatures
from pipelines.filters.blocklist import load_blocklist
from pipelines.filters.clean import Cleaner, are_blank
from pipelines.filters.decontaminate import Search, load_contamination
from pipelines.filters.langid import load_identifier, parse_languages
from pipelines.filters.pii import KINDS, mask_texts
from pipelines.map.clock import Clock
from pipelines.quality import Quality
from pipelines.quality.selection import parse_selection
from pipelines.segments.rows import NAME, Stage, Verdict, whole_texts
from pipelines.tokenizers.tokenizer import load_tokenizer
from shards.errors import UserError

BLOCKED, CONTAMINATED = "url-blocklist", "contaminated"
CONTAMINATION = pa.field("contamination.ngrams", pa.int32())
_PREPARED = ("en", "zh")
"""Languages whose measures are compiled at once where all languages are kept."""

MASKED = tuple(pa.field(f"pii.{kind}", pa.int32()) for kind in KINDS)


def load_chain(options: Options, *, compiled: bool, run: str) -> "Chain":
    """Return the chain of a run, which a process loads once.

    Args:
        options: The options of the run; where its output is does not matter.
        compiled: Use native loops where there are any; one process of a machine compiles them.
        run: Identifies the run: models may have changed since the last one of this process.
    """
    # --plan samples into a folder of its own, with the models that it has described.
    return _load_chain(replace(options, output=Path()), compiled=compiled, run=run)


@lru_cache(maxsize=1)
def _load_chain(options: Options, *, compiled: bool, run: str) -> "Chain":
    del run
    if not compiled:
        return Chain(options)
    with compiling(native_parts(options)):
        chain = Chain(options, compiled=True)
        # The measures of a language are compiled with its first text.
        languages = sorted(chain.languages or _PREPARED)
        chain.quality.judge([""] * len(languages), languages)
    return chain


def native_parts(options: Options) -> list[str]:
    """Return names of what is compiled for the chain of a run: the same for the same loops."""
    selection = parse_selection(options.quality, options.threshold, labels=None)
    profiles = {bound.profile.name for chosen in selection.values() for bound in chosen}
    return [
        "texts",
        *(["pieces"] if options.tokenizer.startswith("sentencepiece:") else []),
        *(["signatures"] if options.dedup == "minhash" else []),
        *(["benchmarks"] if options.decontaminate else []),
        *(f"profile {name}" for name in sorted(profiles)),
    ]


class Chain:
    """The stages of a run with their models."""

    def __init__(self, options: Options, *, compiled: bool = False) -> None:
        """Load the models.

        Args:
            options: The options of the run.
            compiled: Use native loops where there are any; the results are the same.
        """
        self.options = options
        self.cleaner = Cleaner(compiled=compiled)
        model = Path(options.lid_model) if options.lid_model else None
        self.identifier = load_identifier(model, chars=options.lid_chars, compiled=compiled)
        labels = self.identifier.labels
        self.languages = (
            None if "all" in options.languages else parse_languages(options.languages, labels)
        )
        self.tokenizer = load_tokenizer(options.tokenizer, compiled=compiled)
        self.fingerprinter = load_fingerprinter(near=options.dedup == "minhash", compiled=compiled)
        self.quality = Quality.parse(
            options.quality, overrides=options.threshold, compiled=compiled, labels=labels
        )
        self.blocklist = load_blocklist(options.url_blocklist) if options.url_blocklist else None
        self.benchmarks = (
            load_contamination(options.decontaminate) if options.decontaminate else None
        )
        self.search = Search(self.benchmarks, compiled=compiled) if self.benchmarks else None
        self.masking = options.pii == "mask"

    @property
    def stages(self) -> Sequence[Stage]:
        """The stages in order; each drops or quarantines before the next one works."""
        return (
            *([self.block] if self.blocklist else []),
            self.clean,
            self.assess if self.quality.fields else self.langid,
            *([self.decontaminate] if self.benchmarks else []),
            *([self.mask] if self.masking else []),
            self.tokenize,
            self.fingerprint,
        )

    @property
    def metrics(self) -> tuple[pa.Field, ...]:
        """The columns that the stages add to the audit table."""
        return (
            *self.quality.fields,
            *([CONTAMINATION] if self.benchmarks else []),
            *(MASKED if self.masking else []),
        )

    @property
    def facts(self) -> Mapping[str, Any]:
        """Fingerprints of files and models, in place of the options that are their paths."""
        facts: dict[str, Any] = {
            "tokenizer": self.tokenizer.fingerprint,
            "lid_model": self.identifier.fingerprint,
            "quality": {
                "profiles": sorted(self.options.quality),
                "bounds": self.quality.describe(),
                **({OWN_CODE: self.quality.own} if self.quality.own else {}),
            },
        }
        if self.benchmarks:
            facts["decontaminate"] = self.benchmarks.fingerprint
        if self.blocklist:
            facts["url_blocklist"] = self.blocklist.fingerprint
        return facts

    @property
    def engines(self) -> Mapping[str, str]:
        """The libraries that decide bytes, with their versions."""
        return {
            "langid": self.identifier.engine,
            "tokenizer": self.tokenizer.engine,
            **self.quality.engines,
        }

    def block(self, batch: pa.RecordBatch) -> Verdict:
        """Drop documents from blocked addresses."""
        if "url" not in batch.schema.names:
            raise UserError("--url-blocklist needs a corpus whose records have a url")
        assert self.blocklist is not None
        return Verdict(batch, _reasons(self.blocklist.blocked(batch["url"].to_pylist()), BLOCKED))

    def clean(self, batch: pa.RecordBatch) -> Verdict:
        """Repair the Unicode of each text and mark where that changed it; drop empty texts."""
        return clean(batch, self.cleaner)

    def langid(self, batch: pa.RecordBatch) -> Verdict:
        """Add language and score; drop texts in other languages than asked for, or too unsure."""
        batch, _, reasons = self._identified(batch, batch["text"].to_pylist())
        return Verdict(batch, pa.array(reasons, pa.string()))

    def _identified(
        self, batch: pa.RecordBatch, texts: Sequence[str]
    ) -> tuple[pa.RecordBatch, list[str], list[str | None]]:
        """Return the batch with language and score, the languages, and why rows are dropped."""
        labels, scores = self.identifier.identify(texts)
        unsure = scores < np.float32(self.options.language_threshold)
        reasons = [
            "language" if self.languages is not None and label not in self.languages
            else "language-score" if low else None
            for label, low in zip(labels, unsure.tolist(), strict=True)
        ]  # fmt: skip
        batch = _with(batch, "language", pa.array(labels, pa.large_string()).cast(NAME))
        return _with(batch, "score", pa.array(scores)), labels, reasons

    def assess(self, batch: pa.RecordBatch) -> Verdict:
        """Add language, score and the metrics of the language's rules; drop what breaks a rule.

        Every text in a language asked for gets metrics, however unsure its language, so that
        verdicts under other thresholds follow from the audit table.
        """
        texts = batch["text"].to_pylist()
        batch, labels, reasons = self._identified(batch, texts)
        wanted = [row for row, reason in enumerate(reasons) if reason != "language"]
        judged = self.quality.judge([texts[row] for row in wanted], [labels[row] for row in wanted])
        changed = np.zeros(len(texts), bool)
        changed[wanted] = judged.changed
        for row, text in zip(wanted, judged.texts, strict=True):
            texts[row] = text
        batch = _replaced(batch, "text", texts, changed=changed)
        for field in self.quality.fields:
            values = np.full(len(texts), np.nan, np.float32)
            values[wanted] = judged.metrics[field.name]
            batch = _with(batch, field.name, pa.array(values, from_pandas=True))
        broken = np.full(len(texts), None, object)
        broken[wanted] = judged.reasons
        both = zip(reasons, broken, strict=True)
        return Verdict(batch, pa.array([first or second for first, second in both], pa.string()))

    def decontaminate(self, batch: pa.RecordBatch) -> Verdict:
        """Add how many of the benchmarks' n-grams each text holds; drop texts that hold any."""
        assert self.search is not None
        hits = self.search.hits(batch["text"])
        batch = _with(batch, CONTAMINATION.name, pa.array(hits, CONTAMINATION.type))
        return Verdict(batch, _reasons(hits > 0, CONTAMINATED))

    @staticmethod
    def mask(batch: pa.RecordBatch) -> Verdict:
        """Replace personal data in each prompt and text, and count it by kind."""
        totals = np.zeros((len(KINDS), batch.num_rows), np.int32)
        for name in ("prompt", "text"):
            texts, counts = mask_texts(batch[name].to_pylist())
            batch = _replaced(batch, name, texts, changed=np.array([*map(bool, counts)], bool))
            by_kind = [[count.get(kind, 0) for count in counts] for kind in KINDS]
            totals += np.array(by_kind, np.int32)
        for field, column in zip(MASKED, totals, strict=True):
            batch = _with(batch, field.name, pa.array(column))
        return Verdict(batch, pa.nulls(batch.num_rows, pa.string()))

    def tokenize(self, batch: pa.RecordBatch) -> Verdict:
        """Add the tokens of each prompt and text, followed by eos, and how many are the prompt's.

        Texts that the tokenizer fails on are quarantined.
        """
        tokens, lengths, failures = self.tokenizer.encode_batch(batch["text"].to_pylist())
        prompt_lengths = np.zeros(batch.num_rows, np.int32)
        prompted = np.flatnonzero(pc.binary_length(batch["prompt"]).to_numpy())
        if len(prompted):
            prompts, sizes, bad = self.tokenizer.encode_batch(
                batch["prompt"].take(prompted).to_pylist()
            )
            prompt_lengths[prompted] = sizes
            failures = [*failures, *((int(prompted[index]), why) for index, why in bad)]
            starts = np.cumsum(lengths) - lengths
            tokens = np.insert(tokens, np.repeat(starts, prompt_lengths), prompts)
            lengths = lengths + prompt_lengths
        ends = np.cumsum(lengths)
        eos = self.tokenizer.special["eos"]
        values = np.insert(tokens, ends, np.array(eos, tokens.dtype))
        offsets = np.concatenate(([0], ends + np.arange(1, len(ends) + 1)))
        column = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(values))
        reasons: list[str | None] = [None] * batch.num_rows
        for index, _ in failures:
            reasons[index] = "tokenizer-failed"
        batch = _with(batch, "tokens", column)
        batch = _with(batch, "prompt_tokens", pa.array(prompt_lengths))
        return Verdict(batch, pa.array(reasons, pa.string()))

    def fingerprint(self, batch: pa.RecordBatch) -> Verdict:
        """Add the hashes and signatures that dedup compares."""
        return fingerprint(batch, self.fingerprinter)


def clean(batch: pa.RecordBatch, cleaner: Cleaner) -> Verdict:
    """Repair the Unicode of each text and mark where that changed it; drop empty texts."""
    batch, changed = _repaired(batch, "text", cleaner)
    if pc.any(pc.not_equal(batch["prompt"], "")).as_py():
        batch, also = _repaired(batch, "prompt", cleaner)
        changed = changed | also
    batch = _with(batch, "repaired", pa.array(changed))
    return Verdict(batch, _reasons(are_blank(batch["text"]), "empty"))


def _repaired(
    batch: pa.RecordBatch, name: str, cleaner: Cleaner
) -> tuple[pa.RecordBatch, np.ndarray]:
    """Return the batch with a column of text repaired, and which rows changed."""
    column, changed = cleaner.repaired(batch[name])
    return batch.set_column(batch.schema.get_field_index(name), name, column), changed


def _replaced(
    batch: pa.RecordBatch, name: str, texts: Sequence[str], *, changed: np.ndarray
) -> pa.RecordBatch:
    """Return the batch with the changed rows of a column of text taken from `texts`."""
    if not changed.any():
        return batch
    new = pa.array([texts[row] for row in np.flatnonzero(changed).tolist()], pa.large_string())
    column = pc.replace_with_mask(batch[name], pa.array(changed), new)
    return batch.set_column(batch.schema.get_field_index(name), name, column)


def fingerprint(batch: pa.RecordBatch, fingerprinter: Fingerprinter) -> Verdict:
    """Add the 128-bit hash of each prompt and text, and the MinHash signature if it makes any."""
    found = fingerprinter.fingerprints(whole_texts(batch))
    batch = _with(batch, "hash_high", pa.array(found.high))
    batch = _with(batch, "hash_low", pa.array(found.low))
    if found.signatures:
        batch = _with(batch, "signature", pack_signatures(found.signatures))
    return Verdict(batch, pa.nulls(batch.num_rows, pa.string()))


def judge(
    batch: pa.RecordBatch, stages: Sequence[Stage], clock: Clock
) -> tuple[pa.RecordBatch, list[Verdict]]:
    """Return the rows that pass every stage, and by stage those that do not, with reasons.

    Args:
        batch: The rows.
        stages: The stages in order.
        clock: Counts the time of each stage.
    """
    dropped = []
    for stage in stages:
        with clock.time(stage.__name__):
            batch, verdict = split_verdict(stage(batch))
        dropped.append(verdict)
    return batch, dropped


def split_verdict(verdict: Verdict) -> tuple[pa.RecordBatch, Verdict]:
    """Return the rows that stay, and the others with their reasons."""
    if verdict.reasons.null_count == len(verdict.reasons):
        return verdict.batch, Verdict(verdict.batch.slice(0, 0), verdict.reasons.slice(0, 0))
    dropped = pc.is_valid(verdict.reasons)
    return verdict.batch.filter(pc.invert(dropped)), Verdict(
        verdict.batch.filter(dropped), verdict.reasons.filter(dropped)
    )


def _reasons(dropped: Iterable[bool], reason: str) -> pa.Array:
    return pa.array([reason if drop else None for drop in dropped], pa.string())


def _with(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    return batch.append_column(name, column)
