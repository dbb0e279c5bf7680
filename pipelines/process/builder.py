"""Writes the judged batches of a split as segments.

A segment ends after a fixed number of records or tokens, so that splits of any size need the same
memory. Repeated texts within a segment are dropped.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dedup.segment_dedup import SegmentDedup
from pipelines.read.record import WHOLE_BYTES
from pipelines.segments.audit import AUDIT, audit_rows, tally
from pipelines.segments.bins import bins_table, holdout_table
from pipelines.segments.examples import Examples
from pipelines.segments.rows import PATH, QUARANTINE_REASONS, RAW_HEAD, FilterResult, whole_texts
from pipelines.segments.segment import REJECT_SCHEMA, DedupCounts, Segment, with_suffix
from pipelines.segments.unknown import UNKNOWN, count_unknown
from shards.merged import gather
from shards.storage.files import FileEntry, atomic_write
from shards.storage.remote import AnyPath
from shards.tables import write_table

MAX_RECORDS = 131_072

MAX_TOKENS = 32 << 20

MAX_HELD_BYTES = 128 << 20
"""The maximum number of bytes of texts and rejects, which stay in memory until a segment is
closed."""


class SegmentBuilder:
    """Collects judged batches of one source until a segment is full."""

    def __init__(
        self,
        *,
        dedup: bool,
        schema: pa.Schema = AUDIT,
        keep_texts: bool = False,
    ) -> None:
        """Create a builder.

        Args:
            dedup: Whether to drop repeated texts of a file within a segment, and to write the files
                that dedup reads.
            schema: The columns of the audit table.
            keep_texts: Whether to write .texts files.
        """
        self._dedup = dedup
        self._schema = schema
        self._keep_texts = keep_texts
        self.tokens_by_path: Counter[str] = Counter()
        """The number of tokens of each file's documents in closed segments."""
        self._examples = Examples()
        self._clear()

    def _clear(self) -> None:
        self._audit: list[pa.Table] = []
        self._kept: list[pa.RecordBatch] = []
        self._tokens: list[np.ndarray] = []
        self._rejects: list[dict[str, Any]] = []
        self._num_records = 0
        self._num_tokens = 0
        self._held_bytes = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been added since the last segment."""
        return self._num_records == 0

    @property
    def is_full(self) -> bool:
        """Whether the segment must be closed before more rows are added."""
        return (
            self._num_records >= MAX_RECORDS
            or self._num_tokens >= MAX_TOKENS
            or self._held_bytes >= MAX_HELD_BYTES
        )

    def add(self, kept: pa.RecordBatch, dropped: Iterable[FilterResult]) -> None:
        """Add a judged batch: the documents that passed all steps, and the rows that did not.

        Quarantined rows are written to rejects/ if their batch has a column RAW_HEAD.
        """
        for result in dropped:
            if result.batch.num_rows:
                self._hold(result.batch)
                self._audit.append(self._audited(result.batch, result.reasons))
                self._examples.add(result.batch, result.reasons)
                self._keep_raws(result)
            self._num_records += result.batch.num_rows
        if kept.num_rows:
            self._hold(kept)
            self._examples.add(kept, pa.nulls(kept.num_rows, pa.string()))
        if not self._keep_texts:
            kept = kept.drop_columns(["prompt", "text"])
        if kept.num_rows or not self._kept:  # an empty first batch still defines the columns
            tokens = kept["tokens"]
            self._tokens.append(tokens.flatten().to_numpy())
            lengths = tokens.value_lengths().cast(pa.int32())
            index = kept.schema.get_field_index("tokens")
            self._kept.append(kept.set_column(index, "tokens", lengths))
            self._num_tokens += len(self._tokens[-1])
        self._num_records += kept.num_rows

    def _hold(self, rows: pa.RecordBatch) -> None:
        if self._keep_texts:
            sizes = [pc.sum(pc.binary_length(rows[name])).as_py() for name in ("prompt", "text")]
            self._held_bytes += sum(sizes)

    def _keep_raws(self, result: FilterResult) -> None:
        """Keep quarantined rows for rejects/, if the first bytes of their records are known."""
        if RAW_HEAD.name not in result.batch.schema.names:
            return
        rows = result.batch.select(["order", PATH.name, "position", "length", RAW_HEAD.name])
        for row, reason in zip(rows.to_pylist(), result.reasons.to_pylist(), strict=True):
            if reason in QUARANTINE_REASONS:
                self.reject(row, reason=reason, raw=row[RAW_HEAD.name] or b"")

    def reject(self, row: Mapping[str, Any], *, reason: str, raw: bytes) -> None:
        """Keep the place, the first bytes and the reason of a record for rejects/."""
        place = {name: row[name] for name in ("order", PATH.name, "position", "length")}
        raw = raw[:WHOLE_BYTES]
        self._held_bytes += len(raw)
        self._rejects.append({**place, "reason": reason, "raw": raw})

    def close(self, stem: AnyPath) -> Segment:
        """Write the segment's files under `stem`, and start the next segment."""
        documents = self._sorted_documents()
        deduper = SegmentDedup(documents, files=_numbers(documents)) if self._dedup else None
        reasons = deduper.reasons if deduper else pa.nulls(documents.num_rows, pa.string())
        audit = pa.concat_tables([*self._audit, self._audited(documents, reasons)])
        audit = audit.take(np.argsort(audit["order"].to_numpy(), kind="stable"))
        survivors = documents.filter(reasons.is_null())
        tables = {"examples": self._examples.table()}
        if self._keep_texts:
            tables["texts"] = audit.select(["text"])
            audit = audit.drop_columns(["text"])
        tables["audit"] = audit
        if self._rejects:
            tables["rejects"] = pa.Table.from_pylist(self._rejects, REJECT_SCHEMA).sort_by("order")
        files = self._write_documents(stem, survivors)
        files |= {name: write_table(with_suffix(stem, name), tables[name]) for name in tables}
        lengths = survivors["tokens"].to_numpy()
        self._count_tokens(survivors)
        segment = Segment(
            stem=stem.name,
            documents=len(lengths),
            tokens=int(lengths.sum()),
            longest=int(lengths.max(initial=0)),
            shortest=int(lengths.min()) if len(lengths) else 0,
            rejects=len(self._rejects),
            fanned_out=int(pc.sum(pc.greater(audit["ordinal"], 0)).as_py() or 0),
            dedup_counts=deduper.write(stem) if deduper else DedupCounts(),
            tallies=tally(audit),
            files=files | deduper.files if deduper else files,
            unknown=count_unknown(documents),
            empty=_count_empty(documents),
        )
        self._clear()
        return segment

    def _sorted_documents(self) -> pa.Table:
        """Return the documents sorted by `order`, with the start of each document's tokens."""
        documents = pa.Table.from_batches(self._kept)
        lengths = documents["tokens"].to_numpy().astype(np.int64)
        starts = np.cumsum(lengths) - lengths
        documents = documents.append_column("start", pa.array(starts))
        return documents.take(np.argsort(documents["order"].to_numpy(), kind="stable"))

    def _count_tokens(self, documents: pa.Table) -> None:
        sums = documents.group_by(PATH.name).aggregate([("tokens", "sum")])
        for row in sums.to_pylist():
            self.tokens_by_path[row[PATH.name]] += row["tokens_sum"]

    def _audited(self, rows: pa.RecordBatch | pa.Table, reasons: pa.Array) -> pa.Table:
        audit = audit_rows(rows, reasons, schema=self._schema)
        if not self._keep_texts:
            return audit
        return audit.append_column("text", whole_texts(rows))

    def _write_documents(self, stem: AnyPath, documents: pa.Table) -> dict[str, FileEntry]:
        starts, lengths = (documents[name].to_numpy() for name in ("start", "tokens"))
        sizes = np.array([len(tokens) for tokens in self._tokens])
        firsts = np.cumsum(sizes) - sizes
        owners = np.searchsorted(firsts, starts, side="right") - 1
        starts = starts - firsts[owners]
        with atomic_write(with_suffix(stem, "tokens")) as handle:
            for chunk in gather(self._tokens, owners, starts=starts, lengths=lengths):
                handle.write(chunk)
        order = documents["order"].to_numpy()
        metrics = self._schema.names[len(AUDIT) :]
        unused = {"start", "length", "group", "prompt", "text", PATH.name, *metrics}
        unused |= {"hash_high", "hash_low", "signature", UNKNOWN}
        rest = documents.drop_columns(sorted(unused & set(documents.column_names)))
        tables = {
            "bins": bins_table(order, lengths),
            "holdout": holdout_table(order, documents["holdout"].to_numpy()),
            "documents": rest.append_column(PATH, documents[PATH.name]),
        }
        files = {name: write_table(with_suffix(stem, name), tables[name]) for name in tables}
        return {"tokens": handle.entry, **files}


def _numbers(documents: pa.Table) -> np.ndarray:
    """Return a number for each document, which is the same for documents of the same file."""
    paths = documents[PATH.name].combine_chunks()
    numbers: np.ndarray = paths.indices.to_numpy()
    return numbers


def _count_empty(documents: pa.Table) -> dict[str, int]:
    """For each text column that lacks values, return the number of documents without one."""
    names = [field.name for field in documents.schema if pa.types.is_large_string(field.type)]
    counts = {
        name: documents.num_rows - pc.sum(pc.not_equal(documents[name], ""), min_count=0).as_py()
        for name in names
    }
    return {name: count for name, count in counts.items() if count}
