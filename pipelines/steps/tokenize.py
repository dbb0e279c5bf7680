"""The step that turns texts into tokens."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.segments.rows import FilterResult
from pipelines.segments.unknown import UNKNOWN
from pipelines.steps.step import Step
from pipelines.tokenizers.tokenizer import load_tokenizer

FAILED = "tokenizer-failed"

TOKENIZER = b"tokenizer"
"""The key of the tokenizer's fingerprint in the metadata of the column `tokens`."""


class TokenizeStep(Step):
    """Adds the tokens of each prompt and text, followed by eos, and their counts.

    Texts that the tokenizer fails on are quarantined.
    """

    name = "tokenize"
    reasons = (FAILED,)
    adds = ("tokens", "prompt_tokens", UNKNOWN)

    def __init__(self, spec: str, *, eos: str = "") -> None:
        """Load the tokenizer.

        Args:
            spec: The value of --tokenizer.
            eos: The value of --eos.

        Raises:
            UserError: The tokenizer cannot be loaded; see load_tokenizer.
        """
        self.tokenizer = load_tokenizer(spec, eos=eos)
        self.fingerprints = {"tokenizer": self.tokenizer.fingerprint}
        self.library_versions = {"tokenizer": self.tokenizer.library}

    def __call__(self, batch: pa.RecordBatch) -> FilterResult:
        """Add `tokens` (a list of the tokenizer's dtype), `prompt_tokens` and UNKNOWN (int32)."""
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
        unknown = self._count_unknown(tokens, ends)
        eos = self.tokenizer.special["eos"]
        values = np.insert(tokens, ends, np.array(eos, tokens.dtype))
        offsets = np.concatenate(([0], ends + np.arange(1, len(ends) + 1)))
        column = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(values))
        reasons: list[str | None] = [None] * batch.num_rows
        for index, _ in failures:
            reasons[index] = FAILED
        made_by = {TOKENIZER: self.tokenizer.fingerprint}
        batch = batch.append_column(pa.field("tokens", column.type, metadata=made_by), column)
        batch = batch.append_column("prompt_tokens", pa.array(prompt_lengths))
        batch = batch.append_column(UNKNOWN, unknown)
        return FilterResult(batch, pa.array(reasons, pa.string()))

    def _count_unknown(self, tokens: np.ndarray, ends: np.ndarray) -> pa.Array:
        """Return the number of unknown tokens of each text; null if the tokenizer has none."""
        if self.tokenizer.unknown is None:
            return pa.nulls(len(ends), pa.int32())
        found = np.flatnonzero(tokens == self.tokenizer.unknown)
        counts = np.bincount(np.searchsorted(ends, found, side="right"), minlength=len(ends))
        return pa.array(counts, pa.int32())
