"""Personal data in texts is replaced."""

import numpy as np
import pyarrow as pa

from pipelines.filters.pii import KINDS, mask_texts
from pipelines.segments.rows import Verdict
from pipelines.steps.step import Step, no_reasons, replaced

MASKED = tuple(pa.field(f"pii.{kind}", pa.int32()) for kind in KINDS)


class Mask(Step):
    """Replaces personal data in each prompt and text, and counts it by kind."""

    name = "mask"
    fields = MASKED

    def __call__(self, batch: pa.RecordBatch) -> Verdict:
        """Replace it; no row goes."""
        totals = np.zeros((len(KINDS), batch.num_rows), np.int32)
        for name in ("prompt", "text"):
            texts, counts = mask_texts(batch[name].to_pylist())
            batch = replaced(batch, name, texts, changed=np.array([*map(bool, counts)], bool))
            by_kind = [[count.get(kind, 0) for count in counts] for kind in KINDS]
            totals += np.array(by_kind, np.int32)
        for field, column in zip(MASKED, totals, strict=True):
            batch = batch.append_column(field.name, pa.array(column))
        return Verdict(batch, no_reasons(batch))
