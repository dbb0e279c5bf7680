"""Pages about records of the inputs: whether and why they were dropped, with dropped texts."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from shards.view.audit import AUDIT, DROPPED, PLACE, REJECTS, VERDICTS, AuditRecord, RecordFilter
from shards.view.documents import origin, snippet
from shards.view.histogram import histogram
from shards.view.html import Page, Redirect, address
from shards.view.overview import reasons
from shards.view.query import BadQuery, Query
from shards.view.rules import rules_of
from shards.view.search import SPLITS, DocumentSet
from shards.view.similarity import SignedDocument
from shards.view.viewer import Viewer

_PER_PAGE = 50
_MAX_SIMILAR = 50
_MAX_CHARACTERS = 100_000
"""The maximum number of characters of a text that a page shows."""
_RAW_BYTES = 16 * 1024
_HEX_BYTES = 1024
_MAX_ORDER = 2**64
_COLUMNS = ("source", "language", "group", "bytes", "tokens")
SNIPPET = 160
"""The maximum number of characters, or bytes, of a text that a list shows."""


def records(viewer: Viewer, query: Query) -> Page:
    """Return a page of the records that an address selects."""
    wanted, start = _filter(viewer, query), query.number("at")
    found = viewer.audit.search(wanted, start=start, limit=_PER_PAGE, seconds=viewer.seconds)
    return viewer.page(
        "records",
        wanted=wanted,
        parameters=vars(wanted),
        all_sources=viewer.dataset.sources,
        all_generations=[each.name for each in viewer.dataset.manifest.generations],
        verdicts=VERDICTS,
        reasons=sorted({*reasons(viewer), wanted.reason} - {""}),
        all_metrics=viewer.audit.metrics(wanted.source),
        histogram=histogram(viewer, wanted) if wanted.metric and not start else None,
        columns=[*dict.fromkeys([*_COLUMNS, wanted.metric or _COLUMNS[0]])],
        found=found,
        snippets=_snippets(viewer, found.hits),
    )


def next_record(viewer: Viewer, query: Query) -> Redirect:
    """Redirect to the next selected record, or to the list if the search finds none in time."""
    wanted, start = _filter(viewer, query), query.number("at")
    found = viewer.audit.search(wanted, start=start, limit=1, seconds=viewer.seconds)
    if found.hits:
        return Redirect(to=address("record", {**vars(wanted), "row": found.hits[0].row}))
    return Redirect(to=address("records", {**vars(wanted), "at": found.at}))


def _filter(viewer: Viewer, query: Query) -> RecordFilter:
    """Return a filter with the conditions in an address.

    Raises:
        BadQuery: A condition names something that does not exist.
    """
    source = query.choice("source", viewer.dataset.sources)
    metric = query.choice("metric", viewer.audit.metrics(source))
    least, most = query.measure("least"), query.measure("most")
    if metric == "" and (least is not None or most is not None):
        raise BadQuery("Choose the metric that the two numbers limit.")
    names = [generation.name for generation in viewer.dataset.manifest.generations]
    return RecordFilter(
        generation=query.choice("generation", names),
        source=source,
        verdict=query.choice("verdict", VERDICTS),
        reason=query.text("reason"),
        group=query.text("group"),
        language=query.text("language").strip(),
        metric=metric,
        least=least,
        most=most,
    )


def record(viewer: Viewer, query: Query) -> Page:
    """Return the page of a record, with its text or bytes if the dataset has them."""
    shown = viewer.audit.record(query.number("row"))
    values = shown.values
    verdict = values.get("verdict")
    has_document = verdict == "kept" or shown.is_removed
    found = None if has_document else _contents(viewer, [shown])[0]
    text, raw = (found.values.get(name) if found else None for name in ("text", "raw"))
    redaction = viewer.redaction(text) if found else ""
    rules = [] if shown.is_removed else rules_of(viewer, values.get("language") or "")
    limits = {rule.metric: rule for rule in reversed(rules)}
    broken = [each for each in rules if each.reason == values.get("reason") and each.breaks(values)]
    return viewer.page(
        "record",
        record=shown,
        parameters={**vars(_filter(viewer, query)), "at": shown.row + 1},
        document=_document(viewer, shown) if has_document else None,
        is_missing=not has_document and found is None,
        redaction=redaction,
        text=None if redaction else text,
        raw=None if redaction else raw,
        most_characters=_MAX_CHARACTERS,
        most_bytes=_RAW_BYTES,
        hex_bytes=_HEX_BYTES,
        owners=_owners(viewer, found, text) if found and text is not None else [],
        has_slots=viewer.similarity.has_slots,
        broken_rules=broken[:1],
        limits=limits | {rule.metric: rule for rule in broken[:1]},
    )


def _contents(viewer: Viewer, shown: Sequence[AuditRecord]) -> list[AuditRecord | None]:
    """Return the row with the text or bytes of each record; None if there is no such row."""
    found: dict[tuple[object, ...], AuditRecord] = {}
    tables = {"dropped": DROPPED, "quarantined": REJECTS}

    def table(each: AuditRecord) -> tuple[str, str, str]:
        kind = tables.get(each.values.get("verdict", ""), "")
        return kind, each.generation.name, each.source

    for (kind, generation, source), group in groupby(sorted(shown, key=table), key=table):
        orders = [each.values["order"] for each in group if "order" in each.values]
        if kind and orders:
            rows = viewer.audit.by_order(kind, orders, generation=generation, source=source)
            found |= {(generation, source, *_identity(row)): row for row in rows}
    return [found.get((each.generation.name, each.source, *_identity(each))) for each in shown]


def _identity(record: AuditRecord) -> tuple[object, ...]:
    """Return the values that identify a record in its source; unread records have no ordinal."""
    values = record.values
    return *(values.get(name) for name in PLACE[:3]), values.get("ordinal") or 0


def _snippets(viewer: Viewer, shown: Sequence[AuditRecord]) -> list[str]:
    """Return the beginning of each record's text; "" if the dataset has no text to show."""
    return [
        _snippet(viewer, each, row)
        for each, row in zip(shown, _contents(viewer, shown), strict=True)
    ]


def _snippet(viewer: Viewer, shown: AuditRecord, row: AuditRecord | None) -> str:
    if shown.is_removed:
        return ""
    if row is None:
        located = _located(viewer, shown) if shown.values.get("verdict") == "kept" else None
        return snippet(viewer, located[0].place(located[1])) if located else ""
    text, raw = (row.values.get(name) for name in ("text", "raw"))
    if viewer.redaction(text):
        return ""
    return (
        str(text)[:SNIPPET] if text is not None else (raw or b"")[:SNIPPET].decode(errors="replace")
    )


def _owners(viewer: Viewer, found: AuditRecord, text: str) -> list[Mapping[str, Any]]:
    """Return the records of the first document that has the same text as a dropped record."""
    owner = viewer.similarity.owner(text)
    here = (found.generation.name, found.values["order"])
    if owner is None or (owner.generation, owner.order) == here:
        return []
    return _records_of(viewer, owner)


def _records_of(viewer: Viewer, signed: SignedDocument) -> list[Mapping[str, Any]]:
    """Return the records of a document, each with the address of the kept document."""
    records = viewer.audit.by_order(AUDIT, [signed.order], generation=signed.generation)
    return [
        {
            "record": each,
            "similarity": signed.similarity,
            "document": _document(viewer, each) if each.values.get("verdict") == "kept" else None,
            "snippet": _snippet(viewer, each, None),
        }
        for each in records
    ]


def _document(viewer: Viewer, shown: AuditRecord) -> str | None:
    """Return the address of the document that a record was kept as."""
    located = _located(viewer, shown)
    return located and address("document", {**located[0].parameters, "n": located[1]})


def _located(viewer: Viewer, shown: AuditRecord) -> tuple[DocumentSet, int] | None:
    """Return the documents of a record's source and split, and the number of its document there."""
    order = shown.values.get("order")
    source = shown.generation.sources.get(shown.source)
    if source is None or order is None:
        return None
    for split in SPLITS:
        entries = source.split(split)
        # Shard i of n contains the orders with (order * n) >> 64 == i.
        for entry in entries[(order * len(entries)) >> 64 :][:1]:
            shard = viewer.shards.shard(entry.path)
            orders = shard.documents["order"].chunk(0).to_numpy()
            for row in np.flatnonzero(orders == np.uint64(order)).tolist():
                if origin(shard, row).items() <= shown.values.items():
                    selection = viewer.shards.selection(source=shown.source, split=split)
                    return selection, selection.number(entry.path, row)
    return None


def similar(viewer: Viewer, query: Query) -> Page:
    """Return the page of a document's cluster: the documents with similar signatures."""
    names = [generation.name for generation in viewer.dataset.manifest.generations]
    generation = query.choice("generation", names)
    order = query.number("order", below=_MAX_ORDER)
    itself = SignedDocument(generation=generation, order=order)
    least = query.measure("least")
    least = 0.5 if least is None else least
    slots = viewer.similarity.slots(generation, order)
    found, others = None, []
    if slots is not None:
        found = viewer.similarity.similar(
            slots, least=least, start=query.number("at"), seconds=viewer.seconds
        )
        hits = [each for each in found.hits if (each.generation, each.order) != (generation, order)]
        hits = sorted(hits, key=lambda each: -each.similarity)[:_MAX_SIMILAR]
        others = [each for signed in hits for each in _records_of(viewer, signed)]
    return viewer.page(
        "similar",
        itself=_records_of(viewer, itself),
        found=found,
        others=others,
        least=least,
        parameters={"generation": generation, "order": order},
    )
