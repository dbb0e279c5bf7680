"""Texts are repaired; empty ones go."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.filters.clean import Cleaner, are_blank
from pipelines.segments.rows import Verdict
from pipelines.steps.step import Step, reasons_where

EMPTY = "empty"


class Clean(Step):
    """Repairs the Unicode of each text and marks where that changed it; drops empty texts."""

    name = "clean"
    reasons = (EMPTY,)

    def __init__(self, *, compiled: bool = False) -> None:
        """Make the step.

        Args:
            compiled: Use native loops where there are any; the results are the same.
        """
        self.cleaner = Cleaner(compiled=compiled)

    def __call__(self, batch: pa.RecordBatch) -> Verdict:
        """Add `repaired`; drop empty texts."""
        batch, changed = self._repaired(batch, "text")
        if pc.any(pc.not_equal(batch["prompt"], "")).as_py():
            batch, also = self._repaired(batch, "prompt")
            changed = changed | also
        batch = batch.append_column("repaired", pa.array(changed))
        return Verdict(batch, reasons_where(are_blank(batch["text"]), EMPTY))

    def _repaired(self, batch: pa.RecordBatch, name: str) -> tuple[pa.RecordBatch, np.ndarray]:
        """Return the batch with a column of text repaired, and which rows changed."""
        column, changed = self.cleaner.repaired(batch[name])
        return batch.set_column(batch.schema.get_field_index(name), name, column), changed
