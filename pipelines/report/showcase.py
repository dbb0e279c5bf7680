"""Chooses the documents that a report shows: a few for each source and reason, by order.

Examples are read segment by segment, so memory depends on the number of examples and not on the
corpus. For documents that passed every step, the final audit rows have the verdict of dedup.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.dedup.previous import erased_texts
from pipelines.merge.items import MergeRecord
from pipelines.quality import QualityRules, Rule
from pipelines.quality.profile import BELOW
from pipelines.report.sums import MAX_NAME
from pipelines.segments.examples import PER_REASON, max_examples
from pipelines.segments.index import SegmentEntry, SegmentIndex
from pipelines.segments.segment import with_suffix
from shards.manifest import WORK, TableEntry
from shards.storage.files import map_bytes
from shards.storage.remote import AnyPath
from shards.tables import column, lookup, open_table

MAX_SHOWN = 1000
"""The maximum number of documents in a report; if there are many reasons, each has fewer."""

MAX_CHARACTERS = 1_000_000
"""The maximum number of characters of texts in a report."""

HEAD_BYTES = 256
"""The number of first bytes that a report shows of an unreadable record."""

_PLACE = ("order", "path", "position", "ordinal")
_SHOWN_COLUMNS = (
    "path", "position", "ordinal", "group", "bytes", "tokens", "language", "score", "text", "head",
)  # fmt: skip
_HASH = ("hash_high", "hash_low")
_BATCH_ROWS = 65_536

Row = dict[str, Any]
"""A row of the audit table with `text`, and with `head` (hex) if the record is unreadable."""
Place = tuple[int, str, int, int]
"""Order, path, position and ordinal, which identify a document."""
Verdicts = Mapping[Place, str]


def showcase(
    index: SegmentIndex,
    merged: Mapping[str, Sequence[MergeRecord]],
    output: AnyPath,
    *,
    quality: QualityRules,
) -> dict[str, dict[str, list[Row]]]:
    """Return the documents to show, by source and by reason ("" for kept), JSON-able.

    Args:
        index: The segments.
        merged: The records of the merge, by source.
        output: The dataset's folder, which still has the segments.
        quality: The rules of the run, which give the rule and figure that dropped a document.
    """
    chosen: dict[str, SourceExamples] = {}
    for segment in index.segments:
        examples = chosen.setdefault(segment.source, SourceExamples())
        examples.add(_candidates(segment.path(output / WORK), segment, examples))
    shown = {}
    for source in sorted(chosen):
        audits = [table for record in merged[source] for table in record.audit]
        verdicts = _verdicts(audits, output, chosen[source].passed)
        shown[source] = {
            reason: [_shown(row, quality) for row in _without_erased(rows, index, output)]
            for reason, rows in chosen[source].by_reason(verdicts).items()
        }
    return trim(shown)


def _place(row: Row) -> Place:
    return row["order"], row["path"], row["position"], row["ordinal"]


class SourceExamples:
    """The examples of one source so far: those with the smallest orders of each reason."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Row]] = {}

    @property
    def passed(self) -> list[Row]:
        """The examples that no step dropped, by order; dedup may have dropped them."""
        return self._rows.get("", [])

    def largest_order(self, reason: str) -> int:
        """Return the largest order with which a further example of a reason can be added."""
        rows = self._rows.get(reason, [])
        return rows[-1]["order"] if len(rows) == max_examples(reason) else 2**64 - 1

    def add(self, rows: Iterable[Row]) -> None:
        """Add examples, and keep the first ones of each reason."""
        for row in rows:
            self._rows.setdefault(row["reason"], []).append(row)
        for reason, examples in self._rows.items():
            examples.sort(key=_place)
            del examples[max_examples(reason) :]

    def by_reason(self, verdicts: Verdicts) -> dict[str, list[Row]]:
        """Return the examples by final reason, given the verdicts on the examples that passed."""
        self.add([{**row, "reason": verdicts[_place(row)]} for row in self._rows.pop("", [])])
        return {reason: rows[:PER_REASON] for reason, rows in sorted(self._rows.items())}


def _candidates(
    stem: AnyPath, segment: SegmentEntry, examples_so_far: SourceExamples
) -> Iterator[Row]:
    """Yield the examples of a segment that can be added, with their audit rows."""
    examples = open_table(with_suffix(stem, "examples"))
    reasons = examples["reason"].to_pylist()
    limits = {reason: examples_so_far.largest_order(reason) for reason in dict.fromkeys(reasons)}
    limit = np.array([limits[reason] for reason in reasons], np.uint64)
    near = examples.take(np.flatnonzero(column(examples, "order") <= limit))
    # No two rows of a segment have the same order.
    audit_rows = lookup(with_suffix(stem, "audit"), "order", column(near, "order"))
    heads = _heads(stem, column(near, "order")) if segment.rejects else {}
    texts = near.select(["reason", "text", *_HASH]).to_pylist()
    for row, text in zip(audit_rows.to_pylist(), texts, strict=True):
        yield {**row, **text, "head": heads.get(row["order"])}


def _heads(stem: AnyPath, orders: np.ndarray) -> dict[int, str]:
    """Return the first bytes (hex) of the rejected records with certain orders, by order."""
    rejects = open_table(with_suffix(stem, "rejects"))
    rows = np.flatnonzero(np.isin(column(rejects, "order"), orders))
    chosen = rejects.select(["order", "raw"]).take(rows)
    heads = pc.binary_slice(chosen["raw"], 0, HEAD_BYTES).to_pylist()
    return {
        order: head.hex() for order, head in zip(chosen["order"].to_pylist(), heads, strict=True)
    }


def _verdicts(audits: Sequence[TableEntry], output: AnyPath, rows: Sequence[Row]) -> Verdicts:
    """Return the final reasons ("" for kept) of documents that are sorted by order."""
    verdicts: dict[Place, str] = {}
    # Audit file i of n holds the orders with (order * n) >> 64 == i.
    for index, group in groupby(rows, key=lambda row: (row["order"] * len(audits)) >> 64):
        verdicts |= _read_verdicts(output / audits[index].path, {_place(row) for row in group})
    return verdicts


def _read_verdicts(path: AnyPath, places: Collection[Place]) -> dict[Place, str]:
    """Return the reasons of documents from an audit file, which is sorted by order."""
    verdicts = {}
    wanted = np.array(sorted({order for order, *_ in places}), np.uint64)
    with pq.ParquetFile(pa.py_buffer(map_bytes(path))) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=[*_PLACE, "reason"]):
            orders = batch["order"].to_numpy()
            for row in batch.take(np.flatnonzero(np.isin(orders, wanted))).to_pylist():
                if (place := _place(row)) in places:
                    verdicts[place] = row["reason"] or ""
            if orders[-1] > wanted[-1]:
                break
    return verdicts


def _without_erased(rows: list[Row], index: SegmentIndex, output: AnyPath) -> list[Row]:
    """Return examples without those whose text was erased from the dataset."""
    high, low = (np.array([row[name] for row in rows], np.uint64) for name in _HASH)
    erased = erased_texts(output, index.previous, high=high, low=low)
    return [row for row, is_erased in zip(rows, erased.tolist(), strict=True) if not is_erased]


def _shown(row: Row, quality: QualityRules) -> Row:
    """Return the columns of an example that the report shows."""
    score = row["score"]
    return {
        **{name: row[name] for name in _SHOWN_COLUMNS},
        "group": row["group"][:MAX_NAME],
        "score": None if score is None else round(score, 4),
        "broken": next(_broken_rules(row, quality), None),
    }


def _broken_rules(row: Row, quality: QualityRules) -> Iterator[dict[str, Any]]:
    """Yield the rules that the row breaks and that give its reason, each with the row's figure."""
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
    # A rule that is off has the bound NaN, which no value breaks.
    return value < rule.bound if rule.comparison == BELOW else value > rule.bound


def trim(shown: Mapping[str, Mapping[str, list[Row]]]) -> dict[str, dict[str, list[Row]]]:
    """Return the examples; if they exceed the limits, return fewer of them with shorter texts."""
    lists = [rows for reasons in shown.values() for rows in reasons.values()]
    most = PER_REASON
    while most > 1 and sum(len(rows[:most]) for rows in lists) > MAX_SHOWN:
        most -= 1
    characters = MAX_CHARACTERS // max(1, sum(len(rows[:most]) for rows in lists))
    return {
        source: {
            reason: [{**row, "text": row["text"][:characters]} for row in rows[:most]]
            for reason, rows in reasons.items()
        }
        for source, reasons in shown.items()
    }
