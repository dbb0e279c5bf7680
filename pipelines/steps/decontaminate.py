"""Texts that hold parts of benchmarks go."""

from collections.abc import Sequence

import pyarrow as pa

from pipelines.filters.decontaminate import Search, load_contamination
from pipelines.segments.rows import Verdict
from pipelines.steps.step import Step, reasons_where

CONTAMINATED = "contaminated"
CONTAMINATION = pa.field("contamination.ngrams", pa.int32())


class Decontaminate(Step):
    """Adds how many of the benchmarks' n-grams each text holds; drops texts that hold any."""

    name = "decontaminate"
    reasons = (CONTAMINATED,)
    fields = (CONTAMINATION,)

    def __init__(self, paths: Sequence[str], *, compiled: bool = False) -> None:
        """Load the benchmarks.

        Args:
            paths: Their texts, as --decontaminate takes them.
            compiled: Use native loops where there are any; the results are the same.

        Raises:
            UserError: As load_contamination.
        """
        benchmarks = load_contamination(paths)
        self._search = Search(benchmarks, compiled=compiled)
        self.facts = {"decontaminate": benchmarks.fingerprint}

    def __call__(self, batch: pa.RecordBatch) -> Verdict:
        """Add the count; drop texts that hold any."""
        hits = self._search.hits(batch["text"])
        batch = batch.append_column(CONTAMINATION.name, pa.array(hits, CONTAMINATION.type))
        return Verdict(batch, reasons_where(hits > 0, CONTAMINATED))
