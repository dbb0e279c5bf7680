"""Turns records into batches of documents, with each document's identity and its hashes."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.corpus.clean_level import REPAIR, given_level, level_of
from pipelines.corpus.document import Document, Rejected
from pipelines.corpus.failure import user_code_error
from pipelines.corpus.sources import Corpus
from pipelines.read.json_object import Partial
from pipelines.read.record import Damage, Record
from pipelines.read.split import FileSplit
from pipelines.segments.identity import hash_bound, holdout_hashes, order_hashes, sample_hashes
from pipelines.segments.rows import (
    CLEAN,
    DOCUMENT_SCHEMA,
    PATH,
    QUARANTINE_REASONS,
    RAW_HEAD,
    FilterResult,
)
from shards.errors import UserError
from shards.memory import is_out_of_memory

BATCH_RECORDS = 1000
BATCH_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class BatchPiece:
    """Records of a split that go into one batch; the batch may contain several pieces."""

    split: FileSplit
    items: Sequence[Record | Damage]


class DocumentBatcher:
    """Makes batches of the documents of one corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self._module = corpus.module
        self._spec = corpus.spec
        self._columns = corpus.columns
        self._options = corpus.options

    def sample(self, pieces: Sequence[BatchPiece], unsampled: Counter[str]) -> Sequence[BatchPiece]:
        """Return the records that --sample chooses.

        Args:
            pieces: The records to choose from.
            unsampled: The number of records left out, by the path of their file; the counts are
                updated.
        """
        if self._options.sample >= 1:
            return pieces
        limit = np.uint64(hash_bound(self._options.sample))
        sampled = []
        for piece in pieces:
            split, items = piece.split, piece.items
            positions = np.array([item.offset for item in items], np.int64)
            hashes = sample_hashes(split.source, split.relative, positions, seed=self._options.seed)
            chosen = [item for item, kept in zip(items, hashes < limit, strict=True) if kept]
            unsampled[split.relative] += len(items) - len(chosen)
            sampled.append(BatchPiece(split, chosen))
        return sampled

    def to_batch(self, pieces: Sequence[BatchPiece]) -> FilterResult:
        """Return the documents of some records as a batch, and the reasons to leave some out.

        Args:
            pieces: The records, from files of one source; consecutive pieces have different files.

        Raises:
            UserError: The code of the corpus fails.
        """
        by_record = [self._documents(item, piece.split) for piece in pieces for item in piece.items]
        try:
            batch, reasons = self._batch(pieces, by_record)
        except (TypeError, ValueError, AttributeError, pa.ArrowException) as error:
            if isinstance(error, MemoryError):
                raise
            if len(pieces) > 1:
                for piece in pieces:  # the piece at fault raises an error with its path
                    self.to_batch([piece])
            doing = f"its documents of {pieces[0].split.path} do not fit its columns"
            raise user_code_error(self._module, error, doing=doing) from error
        return FilterResult(batch, reasons)

    def _batch(
        self, pieces: Sequence[BatchPiece], by_record: Sequence[Sequence[Document]]
    ) -> tuple[pa.RecordBatch, pa.Array]:
        """Return a batch with DOCUMENT_SCHEMA, provenance and PATH, and a reason for each row."""
        items = [item for piece in pieces for item in piece.items]
        documents = list(itertools.chain.from_iterable(by_record))
        counts = [len(group) for group in by_record]
        texts = pa.array([document.text for document in documents], pa.large_string())
        prompts = pa.array([document.prompt for document in documents], pa.large_string())
        positions = np.repeat(np.array([item.offset for item in items], np.int64), counts)
        lengths = np.repeat(np.array([item.length for item in items], np.int64), counts)
        firsts = np.cumsum(counts) - counts
        ordinals = (np.arange(len(documents)) - np.repeat(firsts, counts)).astype(np.int32)
        files = _files_of(pieces, counts)
        order, holdout = document_hashes(
            [(piece.split.source, piece.split.relative) for piece in pieces],
            files,
            positions=positions,
            ordinals=ordinals,
            seed=self._options.seed,
        )
        columns = [
            pa.array(positions),
            pa.array(lengths),
            pa.array(ordinals),
            pa.array(order),
            pa.array(holdout),
            pc.add(pc.binary_length(texts), pc.binary_length(prompts)),
            self._provenance(documents, self._spec.group, pa.large_string()),
            prompts,
            texts,
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=DOCUMENT_SCHEMA)
        for name, data_type in self._columns.items():
            batch = batch.append_column(name, self._provenance(documents, name, data_type))
        given = given_level(self._options.clean, pieces[0].split.source)
        levels = [level_of(document, given) for document in documents]
        if any(level != REPAIR for level in levels):
            batch = batch.append_column(CLEAN, pa.array(levels, CLEAN.type))
        paths = pa.array([piece.split.relative for piece in pieces], pa.large_string())
        batch = batch.append_column(PATH, pa.DictionaryArray.from_arrays(files, paths))
        reasons = pa.array([document.reason for document in documents], pa.string())
        return batch, reasons

    def _documents(self, item: Record | Damage, split: FileSplit) -> Sequence[Document]:
        if isinstance(item, Damage):
            return [Document("", reason=item.reason)]
        try:
            documents = tuple(self._spec.documents(item.value, self._options))
            for document in documents:
                if "\0" in document.text or "\0" in document.prompt:
                    return [Document("", reason="nul")]
        except Rejected as rejection:
            fields = item.value
            reason = fields.reason if isinstance(fields, Partial) else str(rejection)
            return [Document("", reason=reason)]
        except Exception as error:  # reraise_user_code_errors would be too slow
            if isinstance(error, UserError) or is_out_of_memory(error):
                raise
            doing = f"its documents() fails on the record at {item.offset:,} of {split.path}"
            raise user_code_error(self._module, error, doing=doing) from error
        if not documents:
            raise UserError(
                f"the corpus {self._module}: its documents() returns nothing for the record at "
                f"{item.offset:,} of {split.path}. It has to return at least one document, perhaps "
                "with a reason to drop it, or raise Rejected"
            )
        return documents

    @staticmethod
    def _provenance(documents: Sequence[Document], name: str, data_type: pa.DataType) -> pa.Array:
        empty = "" if data_type == pa.large_string() else None
        if not name:
            return pa.repeat(pa.scalar(empty, data_type), len(documents))
        return pa.array([document.provenance.get(name, empty) for document in documents], data_type)


def document_hashes(
    names: Sequence[tuple[str, str]],
    files: np.ndarray,
    *,
    positions: np.ndarray,
    ordinals: np.ndarray,
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the order and holdout hashes (uint64) of documents.

    Args:
        names: The source and relative path of each file.
        files: The index in `names` of each document's file.
        positions: The position of each document's record.
        ordinals: The number of each document among those of its record.
        seed: The seed of the hashes.
    """
    order, holdout = (np.empty(len(files), np.uint64) for _ in range(2))
    for index, name in enumerate(names):
        mask = files == index
        at = positions[mask]
        order[mask] = order_hashes(*name, positions=at, ordinals=ordinals[mask], seed=seed)
        holdout[mask] = holdout_hashes(*name, at, seed=seed)
    return order, holdout


def _files_of(pieces: Sequence[BatchPiece], counts: Sequence[int]) -> np.ndarray:
    """Return, for each document, the index (int32) of the piece that contains its record."""
    by_record = np.repeat(np.arange(len(pieces), dtype=np.int32), [len(p.items) for p in pieces])
    return np.repeat(by_record, counts)


def add_raw_heads(result: FilterResult, pieces: Sequence[BatchPiece]) -> FilterResult:
    """Return a result with the column RAW_HEAD, the first bytes of quarantined records.

    Args:
        result: The result for some of the records; it is returned unchanged if no record is
            quarantined.
        pieces: The records.
    """
    reasons = result.reasons.to_pylist()
    if QUARANTINE_REASONS.isdisjoint(reasons):
        return result
    by_place = {
        (piece.split.relative, item.offset, item.length): item
        for piece in pieces
        for item in piece.items
    }
    places = zip(
        *(result.batch[name].to_pylist() for name in (PATH.name, "position", "length")),
        strict=True,
    )
    raws = [
        by_place[place].head if reason in QUARANTINE_REASONS else None
        for place, reason in zip(places, reasons, strict=True)
    ]
    return FilterResult(
        result.batch.append_column(RAW_HEAD, pa.array(raws, RAW_HEAD.type)), result.reasons
    )


def group_records(
    readers: Iterable[tuple[FileSplit, Iterable[Record | Damage]]],
) -> Iterator[list[BatchPiece]]:
    """Yield groups of at most BATCH_RECORDS records and little more than 4 MiB of input."""
    batch: list[BatchPiece] = []
    count = size = 0
    for split, reader in readers:
        items: list[Record | Damage] = []
        for item in reader:
            items.append(item)
            count += 1
            size += item.size
            if count >= BATCH_RECORDS or size >= BATCH_BYTES:
                yield [*batch, BatchPiece(split, items)]
                batch, items, count, size = [], [], 0, 0
        if items:
            batch.append(BatchPiece(split, items))
    if batch:
        yield batch
