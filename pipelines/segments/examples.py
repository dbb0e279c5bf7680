"""Examples for the report: of each reason the documents with the smallest order.

The order hash is random and knows no machine, so this is the same uniform sample everywhere.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.segments.rows import whole_texts

PER_REASON = 20
KEPT = 400
"""Of those that no stage dropped, more: dedup drops some later."""

CHARACTERS = 1000

EXAMPLES = pa.schema(
    [
        ("order", pa.uint64()),
        ("path", pa.large_string()),
        ("position", pa.int64()),
        ("ordinal", pa.int32()),
        ("reason", pa.large_string()),
        ("text", pa.large_string()),
    ]
)
"""Examples as a segment keeps them; text is prompt and text, cut to its first CHARACTERS."""


class Examples:
    """Collects the examples of one file's segments."""

    def __init__(self, relative: str) -> None:
        self._relative = relative
        self._found: dict[str, pa.Table] = {}

    def add(self, rows: pa.RecordBatch, reasons: pa.Array) -> None:
        """Take judged rows with their text; `reasons` is null for those that stay."""
        orders = rows["order"].to_numpy()
        given = np.array(reasons.fill_null("").to_pylist(), object)
        for reason in dict.fromkeys(given.tolist()):
            most = PER_REASON if reason else KEPT
            found = self._found.get(reason, EXAMPLES.empty_table())
            near = given == reason
            if len(found) == most:
                near &= orders < np.uint64(found["order"][-1].as_py())
            if near.any():
                new = self._rows(rows.filter(pa.array(near)), reason)
                self._found[reason] = _sorted(pa.concat_tables([found, new]))[:most]

    def _rows(self, rows: pa.RecordBatch, reason: str) -> pa.Table:
        columns = {
            **{name: rows[name] for name in ("order", "position", "ordinal")},
            "path": pa.repeat(pa.scalar(self._relative, pa.large_string()), rows.num_rows),
            "reason": pa.repeat(pa.scalar(reason, pa.large_string()), rows.num_rows),
            "text": pc.utf8_slice_codeunits(whole_texts(rows), 0, CHARACTERS),
        }
        return pa.table([columns[name] for name in EXAMPLES.names], schema=EXAMPLES)

    def table(self) -> pa.Table:
        """Return the examples by reason and order, and forget them."""
        parts = [self._found[reason] for reason in sorted(self._found)]
        self._found = {}
        return pa.concat_tables([EXAMPLES.empty_table(), *parts])


def _sorted(examples: pa.Table) -> pa.Table:
    return examples.sort_by([("order", "ascending"), ("position", "ascending")])


MOST_OPEN = 1000
"""Documents of a source that wait for dedup's verdict; the first of them are shown as kept."""


def most_examples(reason: str) -> int:
    """Return how many of the examples of a reason ("" for kept) may be shown."""
    return PER_REASON if reason else MOST_OPEN
