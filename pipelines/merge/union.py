"""The union of segments: one segment that holds the rows of all, in the same files.

Nothing is left out and nothing looked for: rows are sorted together, and those that other files
point to are numbered anew. Equal texts of two segments stay two rows, and a document that fell in
its segment stays GONE. So all that reads segments makes of the union what it makes of its members.

Files are written one after the other, tables column by column, and what is long in pieces: memory
is the largest of .documents, .audit, .slots and .bands and about one column more (of members behind
a URL the first two once more), never the texts, rejects or tokens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.dedup.bands import (
    EDGES,
    BandRows,
    Signers,
    open_bands,
    read_slots,
    write_bands,
    write_slots,
)
from pipelines.dedup.drops import GONE
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS
from pipelines.segments.examples import EXAMPLES, most_examples
from pipelines.segments.segment import gather, with_suffix
from pipelines.segments.sparse import BLOCK_ROWS
from pipelines.segments.tables import column, map_items, open_rows, open_table, write_table
from shards.storage.files import FileEntry, atomic_write, size_if_there
from shards.storage.remote import AnyPath

TOKENS_AT_ONCE = 16 << 20
BYTES_AT_ONCE = 64 << 20
"""What is copied at a time of tokens, and of texts and rejects."""


@dataclass(frozen=True, slots=True)
class MergedOrder:
    """The rows of several tables, each sorted, in the order that they have together.

    `rows` (uint32[n]) are numbers in the tables back to back, of which each begins at its `starts`
    (int64[k + 1], the last is n).
    """

    rows: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, keys: Sequence[np.ndarray]) -> "MergedOrder":
        """Return the order by a key; rows of one key keep the order of the tables."""
        starts = np.cumsum([0, *(len(key) for key in keys)])
        rows = np.argsort(np.concatenate(keys), kind="stable").astype(np.uint32)
        return cls(rows, starts)

    def renumbered(self, numbers: Sequence[np.ndarray]) -> np.ndarray:
        """Return where rows stand now (uint32), given by the numbers they had; GONE stays."""
        new = np.empty(len(self.rows) + 1, np.uint32)
        new[self.rows] = np.arange(len(self.rows), dtype=np.uint32)
        new[-1] = GONE
        before = [
            np.where(each == GONE, len(self.rows), each + np.int64(start))
            for each, start in zip(numbers, self.starts, strict=False)
        ]
        found: np.ndarray = new[np.concatenate(before)]
        return found

    def pieces(self, num: int) -> Iterator[tuple[np.ndarray, list[slice]]]:
        """Yield the rows in about `num` pieces of whole blocks, each with the slices it comes from.

        A piece tells its rows by their place in those slices of the tables, back to back.
        """
        first = np.zeros(len(self.starts) - 1, np.int64)
        size = max(1, len(self.rows) // num // BLOCK_ROWS) * BLOCK_ROWS
        for block in np.split(self.rows, range(size, len(self.rows), size)):
            near = np.sort(block)  # of each table a run, since tables are sorted
            last = first + np.diff(np.searchsorted(near, self.starts))
            pairs = zip(first.tolist(), last.tolist(), strict=True)
            yield np.searchsorted(near, block), [slice(*pair) for pair in pairs]
            first = last


def write_union(
    stem: AnyPath, members: Sequence[AnyPath], *, dtype: np.dtype[Any]
) -> dict[str, FileEntry]:
    """Write the union of segments and return its files by suffix.

    It is not written, and nothing returned, where two rows of the audit have one order: no two of a
    segment have, and dedup tells the rows of a segment apart by it.

    Args:
        stem: Its stem.
        members: Those of the segments, in the order of their documents' identities.
        dtype: Type of a token.
    """
    orders = _columns(members, "audit", "order")["order"]
    audit = MergedOrder.of(orders)
    order = np.concatenate(orders)[audit.rows]
    if (order[1:] == order[:-1]).any():
        return {}
    del order, orders
    files = {"audit": _write_sorted(stem, members, "audit", audit)}
    if with_suffix(members[0], "texts").exists():
        files["texts"] = _write_long(stem, members, "texts", audit)
    del audit
    pa.default_memory_pool().release_unused()
    files["examples"] = _write_examples(stem, members)
    rejecting = [each for each in members if with_suffix(each, "rejects").exists()]
    if rejecting:
        ranks = MergedOrder.of(_columns(rejecting, "rejects", "order")["order"])
        files["rejects"] = _write_long(stem, rejecting, "rejects", ranks)
    documents = MergedOrder.of(_columns(members, "documents", "order")["order"])
    files["documents"] = _write_sorted(stem, members, "documents", documents)
    # The allocator would keep what the tables took, beside the arrays that follow.
    pa.default_memory_pool().release_unused()
    files["tokens"] = _write_tokens(stem, members, documents, dtype=dtype)
    files["bins"] = _write_bins(stem, members)
    files["holdout"] = _write_holdout(stem, members, documents)
    if with_suffix(members[0], "hashes").exists():
        files["hashes"] = _write_hashes(stem, members, documents)
    if with_suffix(members[0], "slots").exists():
        files |= _write_signatures(stem, members, documents)
    return files


def _columns(members: Sequence[AnyPath], suffix: str, *names: str) -> dict[str, list[np.ndarray]]:
    """Return numeric columns by name, each as the arrays of all segments."""
    found: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for stem in members:
        table = open_table(with_suffix(stem, suffix))
        for name in names:
            found[name].append(column(table, name))
    return found


def _write_sorted(
    stem: AnyPath, members: Sequence[AnyPath], suffix: str, ranks: MergedOrder
) -> FileEntry:
    """Write the rows of a table of all segments as one batch."""
    tables = [open_table(with_suffix(member, suffix)) for member in members]
    rows = pa.array(ranks.rows)
    columns = [
        _whole([table[field.name] for table in tables], field.type).take(rows)
        for field in tables[0].schema
    ]
    return write_table(with_suffix(stem, suffix), pa.table(columns, schema=tables[0].schema))


def _whole(parts: Sequence[pa.ChunkedArray], kind: pa.DataType) -> pa.Array:
    """Return columns back to back."""
    whole = pa.chunked_array([chunk for part in parts for chunk in part.chunks], kind)
    return whole.unify_dictionaries().combine_chunks()


def _write_long(
    stem: AnyPath, members: Sequence[AnyPath], suffix: str, ranks: MergedOrder
) -> FileEntry:
    """Write the rows of a table with long strings, a batch at a time."""
    paths = [with_suffix(member, suffix) for member in members]
    size = sum(max(0, size_if_there(path)) for path in paths)
    schema = open_rows(paths[0], slice(0, 0)).schema
    with (
        atomic_write(with_suffix(stem, suffix)) as handle,
        pa.ipc.new_file(handle, schema) as writer,
    ):
        for places, slices in ranks.pieces(1 + size // BYTES_AT_ONCE):
            read = zip(paths, slices, strict=True)
            near = [open_rows(path, part) for path, part in read if part.stop > part.start]
            rows = pa.concat_tables([schema.empty_table(), *near]).combine_chunks()
            writer.write_table(rows.take(places).combine_chunks(), max_chunksize=BLOCK_ROWS)
    return handle.entry


def _write_examples(stem: AnyPath, members: Sequence[AnyPath]) -> FileEntry:
    """Write those examples that a report of any corpus may show, by reason and order."""
    examples = pa.concat_tables([open_table(with_suffix(each, "examples")) for each in members])
    examples = examples.sort_by(
        [(name, "ascending") for name in ("reason", "order", "position", "ordinal")]
    )
    reasons = np.array(examples["reason"].to_pylist(), object)
    parts = [
        examples.take(np.flatnonzero(reasons == reason)[: most_examples(reason)])
        for reason in dict.fromkeys(reasons.tolist())
    ]
    return write_table(
        with_suffix(stem, "examples"), pa.concat_tables([EXAMPLES.empty_table(), *parts])
    )


def _write_tokens(
    stem: AnyPath, members: Sequence[AnyPath], ranks: MergedOrder, *, dtype: np.dtype[Any]
) -> FileEntry:
    """Write the documents' tokens in their order."""
    lengths_of = _columns(members, "documents", "tokens")["tokens"]
    counts = [each.astype(np.int64) for each in lengths_of]
    sizes = [int(each.sum()) for each in counts]
    lengths = np.concatenate(counts)[ranks.rows]
    starts = np.concatenate([np.cumsum(each) - each for each in counts])[ranks.rows]
    owners = np.searchsorted(ranks.starts, ranks.rows, "right") - 1
    total = sum(sizes)
    cuts = np.searchsorted(np.cumsum(lengths), range(TOKENS_AT_ONCE, total, TOKENS_AT_ONCE))
    with atomic_write(with_suffix(stem, "tokens")) as handle:
        for part in np.split(np.arange(len(owners)), cuts):
            tokens = [np.zeros(0, dtype)] * len(members)
            for number in np.unique(owners[part]).tolist():
                mine = part[owners[part] == number]
                path = with_suffix(members[number], "tokens")
                places = {"starts": starts[mine], "lengths": lengths[mine]}
                tokens[number] = map_items(path, **places, size=sizes[number]).view(dtype)
            for chunk in gather(tokens, owners[part], starts=starts[part], lengths=lengths[part]):
                handle.write(chunk)
    return handle.entry


def _write_bins(stem: AnyPath, members: Sequence[AnyPath]) -> FileEntry:
    """Write what lies before each bin, which adds up."""
    parts = _columns(members, "bins", "documents", "tokens")
    sums = {name: np.sum(found, axis=0) for name, found in parts.items()}
    return write_table(with_suffix(stem, "bins"), pa.table(sums))


def _write_holdout(stem: AnyPath, members: Sequence[AnyPath], documents: MergedOrder) -> FileEntry:
    parts = _columns(members, "holdout", "holdout", "order", "row")
    holdout, order = (np.concatenate(parts[name]) for name in ("holdout", "order"))
    row = documents.renumbered(parts["row"])
    by = np.lexsort((row, holdout))
    table = pa.table({"holdout": holdout[by], "row": row[by], "order": order[by]})
    return write_table(with_suffix(stem, "holdout"), table)


def _write_hashes(stem: AnyPath, members: Sequence[AnyPath], documents: MergedOrder) -> FileEntry:
    names = ("hash_high", "hash_low", "order", "row", "copies")
    columns = _columns(members, "hashes", *names)
    row = documents.renumbered(columns.pop("row"))
    values = {name: np.concatenate(found) for name, found in columns.items()}
    by = np.lexsort((values["order"], values["hash_low"], values["hash_high"]))
    values["row"] = row
    return write_table(
        with_suffix(stem, "hashes"), pa.table({name: values[name][by] for name in names})
    )


def _write_signatures(
    stem: AnyPath, members: Sequence[AnyPath], documents: MergedOrder
) -> dict[str, FileEntry]:
    """Write signers, their bands and their links."""
    slots = [with_suffix(member, "slots") for member in members]
    signers = MergedOrder.of([read_slots(path, "order") for path in slots])
    return {
        "slots": _write_slots(stem, slots, documents, signers),
        "bands": _write_bands(stem, members, signers),
        "links": _write_links(stem, members, signers),
    }


def _write_slots(
    stem: AnyPath, slots: Sequence[AnyPath], documents: MergedOrder, signers: MergedOrder
) -> FileEntry:
    order = np.concatenate([read_slots(path, "order") for path in slots])[signers.rows]
    row = documents.renumbered([read_slots(path, "row") for path in slots])[signers.rows]
    new = _places(signers)
    values = np.empty((len(order), NUM_SLOTS), np.uint8)
    for path, first, last in zip(slots, signers.starts, signers.starts[1:], strict=False):
        values[new[first:last]] = read_slots(path, "slots")
    return write_slots(with_suffix(stem, "slots"), Signers(order, row, values))


def _places(ranks: MergedOrder) -> np.ndarray:
    """Return where each row, by its number in the tables back to back, stands (uint32[n])."""
    return ranks.renumbered([np.arange(len(ranks.rows))])


def _write_bands(stem: AnyPath, members: Sequence[AnyPath], signers: MergedOrder) -> FileEntry:
    paths = [with_suffix(member, "bands") for member in members]
    bands = []
    for band in range(NUM_BANDS):
        parts = [open_bands(path, band, first=0, last=EDGES) for path in paths]
        hashes = np.concatenate([part.hash for part in parts])
        signer = signers.renumbered([part.signer for part in parts])
        by = np.lexsort((signer, hashes))
        copies = np.concatenate([part.copies for part in parts])
        bands.append(BandRows(hashes[by], signer[by], copies[by]))
    return write_bands(with_suffix(stem, "bands"), bands)


def _write_links(stem: AnyPath, members: Sequence[AnyPath], signers: MergedOrder) -> FileEntry:
    parts = _columns(members, "links", "signer", "smaller")
    links = {name: signers.renumbered(found) for name, found in parts.items()}
    by = np.lexsort((links["smaller"], links["signer"]))
    return write_table(
        with_suffix(stem, "links"), pa.table({name: found[by] for name, found in links.items()})
    )
