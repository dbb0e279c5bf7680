"""Examples for the report: for each reason, the documents with the smallest order.

The order is a hash that is the same on every machine, so these documents are a uniform sample that
does not depend on the machine.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.segments.rows import whole_texts
from shards.text_hash import fold_spaces, text_hashes

PER_REASON = 20
"""The maximum number of examples of a reason to drop documents."""

MAX_KEPT = 400
"""The maximum number of examples that no step dropped; it exceeds PER_REASON because dedup drops
some of these examples."""

CHARACTERS = 1000
"""The maximum number of characters of an example's text."""

EXAMPLES = pa.schema(
    [
        ("order", pa.uint64()),
        ("path", pa.large_string()),
        ("position", pa.int64()),
        ("ordinal", pa.int32()),
        ("reason", pa.large_string()),
        ("text", pa.large_string()),
        ("hash_high", pa.uint64()),
        ("hash_low", pa.uint64()),
    ]
)
"""The columns of a segment's examples. `text` has the first CHARACTERS characters of prompt and
text; the hash is that of the whole text."""


class Examples:
    """Collects the examples of segments."""

    def __init__(self) -> None:
        self._by_reason: dict[str, pa.Table] = {}

    def add(self, rows: pa.RecordBatch, reasons: pa.Array) -> None:
        """Add rows with their texts; `reasons` is null for kept rows."""
        orders = rows["order"].to_numpy()
        for reason, candidates in _by_reason(reasons).items():
            most = PER_REASON if reason else MAX_KEPT
            examples = self._by_reason.get(reason, EXAMPLES.empty_table())
            chosen = candidates
            if len(examples) == most:
                chosen = chosen[orders[chosen] < np.uint64(examples["order"][-1].as_py())]
            if len(chosen) > most:
                largest = np.partition(orders[chosen], most - 1)[most - 1]
                chosen = chosen[orders[chosen] <= largest]
            if len(chosen):
                names = [name for name in _HASHES if name in rows.schema.names]
                taken = rows.select([*_COLUMNS, *names]).take(pa.array(chosen))
                new = self._rows(taken, reason)
                self._by_reason[reason] = _sorted(pa.concat_tables([examples, new]))[:most]

    def _rows(self, rows: pa.RecordBatch, reason: str) -> pa.Table:
        texts = whole_texts(rows)
        columns = {
            **{name: rows[name] for name in ("order", "position", "ordinal")},
            "path": rows["path"].cast(pa.large_string()),
            "reason": pa.repeat(pa.scalar(reason, pa.large_string()), rows.num_rows),
            "text": pc.utf8_slice_codeunits(texts, 0, CHARACTERS),
            **_hashes(rows, texts),
        }
        return pa.table([columns[name] for name in EXAMPLES.names], schema=EXAMPLES)

    def table(self) -> pa.Table:
        """Return the examples, sorted by reason and order, and forget them."""
        parts = [self._by_reason[reason] for reason in sorted(self._by_reason)]
        self._by_reason = {}
        return pa.concat_tables([EXAMPLES.empty_table(), *parts])


_COLUMNS = ["order", "path", "position", "ordinal", "prompt", "text"]
_HASHES = ("hash_high", "hash_low")


def _hashes(rows: pa.RecordBatch, texts: pa.Array) -> Mapping[str, pa.Array]:
    """Return the hashes of texts; rows that passed every step already have them."""
    if all(name in rows.schema.names for name in _HASHES):
        return {name: rows[name] for name in _HASHES}
    halves = text_hashes(map(fold_spaces, texts.to_pylist()))
    return {name: pa.array(half) for name, half in zip(_HASHES, halves, strict=True)}


def _by_reason(reasons: pa.Array) -> dict[str, np.ndarray]:
    """Return the rows (int64) of each reason ("" for kept), in order of first occurrence."""
    if reasons.null_count == len(reasons):
        return {"": np.arange(len(reasons))}
    coded = reasons.fill_null("").dictionary_encode()
    codes = coded.indices.to_numpy()
    return {
        reason: np.flatnonzero(codes == code)
        for code, reason in enumerate(coded.dictionary.to_pylist())
    }


def _sorted(examples: pa.Table) -> pa.Table:
    return examples.sort_by([("order", "ascending"), ("position", "ascending")])


MAX_OPEN = 1000
"""The maximum number of examples of a source that wait for the verdict of dedup. The report shows
the first of the examples that dedup keeps."""


def max_examples(reason: str) -> int:
    """Return the maximum number of examples of a reason ("" for kept) that a report needs."""
    return PER_REASON if reason else MAX_OPEN
