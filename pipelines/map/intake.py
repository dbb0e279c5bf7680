"""From records to batches: a corpus's documents with their identity and three hashes of it."""

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.corpus.clean_level import REPAIR, given_level, level_of
from pipelines.corpus.document import Document, Rejected
from pipelines.corpus.failure import code_failure
from pipelines.corpus.sources import Corpus
from pipelines.inputs.split import Split
from pipelines.readers.record import Damage, Record
from pipelines.readers.salvage import Partial
from pipelines.segments.identity import hash_bound, holdout_hashes, order_hashes, sample_hashes
from pipelines.segments.rows import CLEAN, RAW, READ, REJECTS, Verdict
from shards.errors import UserError
from shards.memory import is_lack_of_memory

BATCH_RECORDS = 1000
BATCH_BYTES = 4 << 20


class Intake:
    """Makes batches of one corpus's records."""

    def __init__(self, corpus: Corpus) -> None:
        self._module = corpus.module
        self._recipe = corpus.recipe
        self._columns = corpus.columns
        self._options = corpus.options

    def sampled(
        self, items: Sequence[Record | Damage], split: Split
    ) -> tuple[Sequence[Record | Damage], int]:
        """Return the records that --sample takes, and how many it leaves out."""
        if self._options.sample >= 1:
            return items, 0
        positions = np.array([item.offset for item in items], np.int64)
        hashes = sample_hashes(split.source, split.relative, positions, seed=self._options.seed)
        limit = np.uint64(hash_bound(self._options.sample))
        taken = [item for item, sampled in zip(items, hashes < limit, strict=True) if sampled]
        return taken, len(items) - len(taken)

    def read(self, items: Sequence[Record | Damage], split: Split) -> Verdict:
        """Return the documents of records as a batch of READ, and why some are left out."""
        by_record = [self._documents(item, split) for item in items]
        try:
            batch, reasons = self._batch(items, by_record, split)
        except (TypeError, ValueError, AttributeError, pa.ArrowException) as error:
            if isinstance(error, MemoryError):
                raise
            doing = f"it makes documents of {split.path} that fit no table"
            raise code_failure(self._module, error, doing=doing) from error
        return Verdict(batch, reasons)

    def _batch(
        self,
        items: Sequence[Record | Damage],
        by_record: Sequence[Sequence[Document]],
        split: Split,
    ) -> tuple[pa.RecordBatch, pa.Array]:
        """Return a batch of READ with provenance, and why documents are left out."""
        documents = list(itertools.chain.from_iterable(by_record))
        counts = [len(group) for group in by_record]
        texts = pa.array([document.text for document in documents], pa.large_string())
        prompts = pa.array([document.prompt for document in documents], pa.large_string())
        positions = np.repeat(np.array([item.offset for item in items], np.int64), counts)
        lengths = np.repeat(np.array([item.length for item in items], np.int64), counts)
        firsts = np.cumsum(counts) - counts
        ordinals = (np.arange(len(documents)) - np.repeat(firsts, counts)).astype(np.int32)
        seed = self._options.seed
        columns = [
            pa.array(positions),
            pa.array(lengths),
            pa.array(ordinals),
            pa.array(
                order_hashes(
                    split.source, split.relative, positions=positions, ordinals=ordinals, seed=seed
                )
            ),
            pa.array(holdout_hashes(split.source, split.relative, positions, seed=seed)),
            pc.add(pc.binary_length(texts), pc.binary_length(prompts)),
            self._provenance(documents, self._recipe.group, pa.large_string()),
            prompts,
            texts,
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=READ)
        for name, data_type in self._columns.items():
            batch = batch.append_column(name, self._provenance(documents, name, data_type))
        given = given_level(self._options.clean, split.source)
        levels = [level_of(document, given) for document in documents]
        if any(level != REPAIR for level in levels):
            batch = batch.append_column(CLEAN, pa.array(levels, CLEAN.type))
        reasons = pa.array([document.reason for document in documents], pa.string())
        return batch, reasons

    def _documents(self, item: Record | Damage, split: Split) -> Sequence[Document]:
        if isinstance(item, Damage):
            return [Document("", reason=item.reason)]
        try:
            documents = tuple(self._recipe.documents(item.value, self._options))
            for document in documents:
                if "\0" in document.text or "\0" in document.prompt:
                    return [Document("", reason="nul")]
        except Rejected as rejection:
            fields = item.value
            reason = fields.reason if isinstance(fields, Partial) else str(rejection)
            return [Document("", reason=reason)]
        except Exception as error:  # by hand: for each record, a context costs too much
            if isinstance(error, UserError) or is_lack_of_memory(error):
                raise
            doing = f"its documents() fails on the record at {item.offset:,} of {split.path}"
            raise code_failure(self._module, error, doing=doing) from error
        if not documents:
            raise UserError(
                f"the corpus {self._module}: its documents() returns nothing for the record at "
                f"{item.offset:,} of {split.path}: a record makes one document at least, if need "
                "be with a reason to leave it out, or raises Rejected"
            )
        return documents

    @staticmethod
    def _provenance(documents: Sequence[Document], name: str, data_type: pa.DataType) -> pa.Array:
        empty = "" if data_type == pa.large_string() else None
        if not name:
            return pa.repeat(pa.scalar(empty, data_type), len(documents))
        return pa.array([document.provenance.get(name, empty) for document in documents], data_type)


def with_raws(verdict: Verdict, items: Sequence[Record | Damage]) -> Verdict:
    """Return a verdict with a column RAW of the first bytes of records that are quarantined.

    Args:
        verdict: On some of the records; without quarantined ones it stays as it is.
        items: The records.
    """
    reasons = verdict.reasons.to_pylist()
    if REJECTS.isdisjoint(reasons):
        return verdict
    by_place = {(item.offset, item.length): item for item in items}
    places = verdict.batch.select(["position", "length"]).to_pylist()
    raws = [
        by_place[place["position"], place["length"]].head if reason in REJECTS else None
        for place, reason in zip(places, reasons, strict=True)
    ]
    return Verdict(verdict.batch.append_column(RAW, pa.array(raws, RAW.type)), verdict.reasons)


def group_records(reader: Iterable[Record | Damage]) -> Iterator[list[Record | Damage]]:
    """Yield runs of at most BATCH_RECORDS records and little more than 4 MiB of input."""
    batch: list[Record | Damage] = []
    size = 0
    for item in reader:
        batch.append(item)
        size += item.size
        if len(batch) >= BATCH_RECORDS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
