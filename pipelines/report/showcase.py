"""Which documents a report shows: of each source and reason a few, chosen by their order.

Examples are taken segment by segment, so memory depends on how many are shown, never on the corpus.
What dedup made of those that passed every stage stands in the final audit rows.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.merge.tasks import MergeRecord
from pipelines.quality import Quality, Rule
from pipelines.quality.profile import BELOW
from pipelines.report.sums import MOST_NAME
from pipelines.segments.examples import PER_REASON, most_examples
from pipelines.segments.plan import Plan, PlannedSegment
from pipelines.segments.segment import with_suffix
from pipelines.segments.tables import column, lookup, open_table
from shards.manifest import WORK, TableEntry
from shards.storage.files import map_bytes
from shards.storage.remote import AnyPath

MOST_SHOWN = 1000
"""Documents that a report shows in all; where reasons are many, fewer of each."""

MOST_CHARACTERS = 1_000_000
"""Characters of text that a report shows in all."""

HEAD_BYTES = 256
"""Of a record that could not be read so many first bytes are shown."""

_PLACE = ("order", "path", "position", "ordinal")
_TOLD = (
    "path", "position", "ordinal", "group", "bytes", "tokens", "language", "score", "text", "head",
)  # fmt: skip
_BATCH_ROWS = 65_536

Row = dict[str, Any]
"""A row of the audit table with `text`, and `head` (hex) where it could not be read."""
Place = tuple[int, str, int, int]
"""Order, path, position, ordinal: what documents are told apart by."""
Verdicts = Mapping[Place, str]


def showcase(
    plan: Plan,
    merged: Mapping[str, Sequence[MergeRecord]],
    output: AnyPath,
    *,
    quality: Quality,
) -> dict[str, dict[str, list[Row]]]:
    """Return the documents to show, by source and by reason ("" for kept), JSON-able.

    Args:
        plan: The segments.
        merged: Of all shards, by source.
        output: The dataset's folder; its segments are still there.
        quality: The rules of the run: what a document broke is told with the figure.
    """
    chosen: dict[str, SourceExamples] = {}
    for segment in plan.segments:
        found = chosen.setdefault(segment.source, SourceExamples())
        found.add(_rows(segment.path(output / WORK), segment, found))
    shown = {}
    for source in sorted(chosen):
        audits = [table for record in merged[source] for table in record.audit]
        verdicts = _verdicts(audits, output, chosen[source].open)
        shown[source] = {
            reason: [_shown(row, quality) for row in rows]
            for reason, rows in chosen[source].settled(verdicts).items()
        }
    return trimmed(shown)


def _place(row: Row) -> Place:
    return row["order"], row["path"], row["position"], row["ordinal"]


class SourceExamples:
    """The examples of one source so far, the smallest orders of each reason."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Row]] = {}

    @property
    def open(self) -> list[Row]:
        """Those that no stage dropped, by order; dedup may have."""
        return self._rows.get("", [])

    def reach(self, reason: str) -> int:
        """Return the largest order that an example of a reason may have."""
        rows = self._rows.get(reason, [])
        return rows[-1]["order"] if len(rows) == most_examples(reason) else 2**64 - 1

    def add(self, rows: Iterable[Row]) -> None:
        """Take examples."""
        for row in rows:
            self._rows.setdefault(row["reason"], []).append(row)
        for reason, found in self._rows.items():
            found.sort(key=_place)
            del found[most_examples(reason) :]

    def settled(self, verdicts: Verdicts) -> dict[str, list[Row]]:
        """Return the examples by reason, with the final verdicts on the open ones."""
        self.add([{**row, "reason": verdicts[_place(row)]} for row in self._rows.pop("", [])])
        return {reason: found[:PER_REASON] for reason, found in sorted(self._rows.items())}


def _rows(stem: AnyPath, segment: PlannedSegment, chosen: SourceExamples) -> Iterator[Row]:
    """Yield the examples of a segment that may be among the first, with what is known of each."""
    examples = open_table(with_suffix(stem, "examples"))
    reasons = examples["reason"].to_pylist()
    reaches = {reason: chosen.reach(reason) for reason in dict.fromkeys(reasons)}
    reach = np.array([reaches[reason] for reason in reasons], np.uint64)
    near = examples.take(np.flatnonzero(column(examples, "order") <= reach))
    # No two rows of a segment have one order (union.py).
    rows = lookup(with_suffix(stem, "audit"), "order", column(near, "order"))
    heads = _heads(stem, column(near, "order")) if segment.rejects else {}
    told = near.select(["reason", "text"]).to_pylist()
    for row, more in zip(rows.to_pylist(), told, strict=True):
        yield {**row, **more, "head": heads.get(row["order"])}


def _heads(stem: AnyPath, orders: np.ndarray) -> dict[int, str]:
    """Return the first bytes (hex) of those records among some that could not be read."""
    rejects = open_table(with_suffix(stem, "rejects"))
    rows = np.flatnonzero(np.isin(column(rejects, "order"), orders))
    found = rejects.select(["order", "raw"]).take(rows)
    heads = pc.binary_slice(found["raw"], 0, HEAD_BYTES).to_pylist()
    return {
        order: head.hex() for order, head in zip(found["order"].to_pylist(), heads, strict=True)
    }


def _verdicts(audits: Sequence[TableEntry], output: AnyPath, rows: Sequence[Row]) -> Verdicts:
    """Return the final reasons ("" for kept) of documents, given by order."""
    found: dict[Place, str] = {}
    # Audit file i of n holds the orders with (order * n) >> 64 == i.
    for index, group in groupby(rows, key=lambda row: (row["order"] * len(audits)) >> 64):
        found |= _looked_up(output / audits[index].path, {_place(row) for row in group})
    return found


def _looked_up(path: AnyPath, wanted: Collection[Place]) -> dict[Place, str]:
    """Return the reasons that an audit file, which is sorted by order, gives for some documents."""
    found = {}
    orders = np.array(sorted({order for order, *_ in wanted}), np.uint64)
    with pq.ParquetFile(pa.py_buffer(map_bytes(path))) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=[*_PLACE, "reason"]):
            here = batch["order"].to_numpy()
            for row in batch.take(np.flatnonzero(np.isin(here, orders))).to_pylist():
                if (place := _place(row)) in wanted:
                    found[place] = row["reason"] or ""
            if here[-1] > orders[-1]:
                break
    return found


def _shown(row: Row, quality: Quality) -> Row:
    """Return what the report tells of an example."""
    score = row["score"]
    return {
        **{name: row[name] for name in _TOLD},
        "group": row["group"][:MOST_NAME],
        "score": None if score is None else round(score, 4),
        "broken": next(iter(_broken(row, quality)), None),
    }


def _broken(row: Row, quality: Quality) -> Iterator[dict[str, Any]]:
    """Yield the rules of the row's reason that it breaks, with the figure that breaks them."""
    for rule in quality.rules(row["language"]) if row["language"] else ():
        value = row[rule.metric]
        if rule.reason == row["reason"] and value is not None and _breaks(value, rule):
            yield {
                "metric": rule.metric,
                "value": value,
                "comparison": rule.comparison,
                "bound": rule.bound,
            }


def _breaks(value: float, rule: Rule) -> bool:
    # A bound of NaN, which is a rule that is off, is neither.
    return value < rule.bound if rule.comparison == BELOW else value > rule.bound


def trimmed(shown: Mapping[str, Mapping[str, list[Row]]]) -> dict[str, dict[str, list[Row]]]:
    """Return fewer examples of each reason, and less of each text, where they are many in all."""
    lists = [rows for reasons in shown.values() for rows in reasons.values()]
    most = PER_REASON
    while most > 1 and sum(len(rows[:most]) for rows in lists) > MOST_SHOWN:
        most -= 1
    characters = MOST_CHARACTERS // max(1, sum(len(rows[:most]) for rows in lists))
    return {
        source: {
            reason: [{**row, "text": row["text"][:characters]} for row in rows[:most]]
            for reason, rows in reasons.items()
        }
        for source, reasons in shown.items()
    }
