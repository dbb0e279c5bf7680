"""Records of the inputs: what became of them, and the texts of those that were dropped."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from shards.manifest import TRAIN, VALIDATION
from shards.view.audit import AUDIT, DROPPED, REJECTS, VERDICTS, Filter, Record
from shards.view.document import is_of
from shards.view.histogram import histogram
from shards.view.html import Page, Redirect, address, cell
from shards.view.overview import reasons
from shards.view.query import BadQuery, Query
from shards.view.similarity import Signed
from shards.view.viewer import Viewer

_PER_PAGE = 50
_MOST_SIMILAR = 50
_MOST_CHARACTERS = 100_000
"""Of a text that a page shows."""
_RAW_BYTES = 16 * 1024
_HEX_BYTES = 1024
_ROW_BYTES = 16


def records(viewer: Viewer, query: Query) -> Page:
    """Return a page of the records that are looked for."""
    wanted = _filter(viewer, query)
    start = query.number("at")
    found = viewer.audit.search(wanted, start=start, most=_PER_PAGE, budget=viewer.budget())
    if start > found.total:
        raise BadQuery(f"There are {found.total:,} records: at {start:,} there is nothing.")
    head = ["record", "verdict", "reason", "source", "language", "group", "bytes", "tokens"]
    head += [wanted.metric] if wanted.metric not in ("", "bytes", "tokens") else []
    values = {
        "wanted": wanted,
        "is_open": wanted.metric or not (wanted.columns or wanted.source or wanted.generation),
        "all_sources": viewer.dataset.sources,
        "all_generations": [each.name for each in viewer.dataset.manifest.generations],
        "verdicts": VERDICTS,
        "reasons": sorted({*reasons(viewer), wanted.reason} - {""}),
        "all_metrics": viewer.audit.metrics(wanted.source),
        "histogram": histogram(viewer, wanted) if wanted.metric and not start else None,
        "first": _record_address(found.hits[0], wanted) if found.hits else None,
        "head": head,
        "rows": [_row(record, wanted, head) for record in found.hits],
        "found": found,
        "more": address("records", {**vars(wanted), "at": found.at}),
    }
    return Page(template="records", title="Records", values=values)


def next_record(viewer: Viewer, query: Query) -> Redirect:
    """Return the first record that is looked for, from a row on; the list if none is near."""
    wanted = _filter(viewer, query)
    found = viewer.audit.search(wanted, start=query.number("at"), most=1, budget=viewer.budget())
    if found.hits:
        return Redirect(to=_record_address(found.hits[0], wanted))
    return Redirect(to=address("records", {**vars(wanted), "at": found.at}))


def _record_address(record: Record, wanted: Filter) -> str:
    return address("record", {**vars(wanted), "row": record.row})


def _filter(viewer: Viewer, query: Query) -> Filter:
    """Return what an address looks for.

    Raises:
        BadQuery: There is no such thing.
    """
    source = query.choice("source", viewer.dataset.sources)
    metric = query.choice("metric", viewer.audit.metrics(source))
    least, most = query.measure("least"), query.measure("most")
    if metric == "" and (least is not None or most is not None):
        raise BadQuery("Name the metric that the two numbers are about.")
    names = [generation.name for generation in viewer.dataset.manifest.generations]
    return Filter(
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


def _row(record: Record, wanted: Filter, head: list[str]) -> list[object]:
    shown = {
        **{name: cell(record.values.get(name)) for name in head},
        "source": record.table.entry.source,
        "record": {"to": _record_address(record, wanted), "label": _place(record)},
    }
    return [shown[name] for name in head]


def _place(record: Record) -> str:
    return f"{record.values.get('path')}:{record.values.get('position')}"


def record(viewer: Viewer, query: Query) -> Page:
    """Return all that is known of a record, with its text or bytes where they were kept."""
    shown = viewer.audit.record(query.number("row"))
    after = {**vars(_filter(viewer, query)), "at": shown.row + 1}
    known = shown.values
    verdict = "removed" if shown.is_removed else known.get("reason") or known.get("verdict")
    facts = {
        name: cell(value)
        for name, value in known.items()
        if value not in (None, "") and not isinstance(value, float)
    }
    values = {
        "verdict": verdict,
        "next": address("next", after),
        "is_removed": shown.is_removed,
        "facts": {
            "source": shown.table.entry.source,
            **facts,
            "order": str(known.get("order")),
        },
        "metrics": {n: cell(each) for n, each in known.items() if isinstance(each, float)},
        **dict.fromkeys(("document", "missing", "text", "owners", "raw")),
        **_contents(viewer, shown),
        **_likes(viewer, shown),
    }
    return Page(template="record", title=f"Record {verdict}", values=values)


def _contents(viewer: Viewer, shown: Record) -> Mapping[str, Any]:
    """Return the document of a record, or its text or bytes, whatever the dataset has."""
    verdict = shown.values.get("verdict")
    if verdict == "kept" or shown.is_removed:
        return {"document": document_address(viewer, shown)}
    found = _same(viewer, DROPPED if verdict == "dropped" else REJECTS, shown)
    if found is None:
        hint = " Build with --keep-dropped to have the texts." if verdict == "dropped" else ""
        return {"missing": f"The dataset does not have its text.{hint}", "missing_class": "note"}
    text, raw = found.values.get("text"), found.values.get("raw")
    if why := viewer.redaction(text):
        return {"missing": f"Its text is not shown: {why}.", "missing_class": "warn"}
    contents: dict[str, Any] = {}
    if text is not None:
        contents["text"], contents["characters"] = text[:_MOST_CHARACTERS], len(text)
        contents["owners"] = _owners(viewer, found)
    if raw is not None:
        contents["raw"] = {
            "text": raw[:_RAW_BYTES].decode(errors="backslashreplace"),
            "hex": _hex(raw[:_HEX_BYTES]),
            "bytes": len(raw),
            "shown": min(len(raw), _RAW_BYTES),
        }
    return contents


def _same(viewer: Viewer, kind: str, shown: Record) -> Record | None:
    """Return the row of another table about the same document."""
    order = shown.values.get("order")
    if order is None:
        return None
    records = viewer.audit.by_order(
        kind, order, generation=shown.table.generation.name, source=shown.table.entry.source
    )
    names = ("path", "position") if kind == REJECTS else ("path", "position", "ordinal")
    wanted = [shown.values.get(name) for name in names]
    same = (each for each in records if [each.values.get(name) for name in names] == wanted)
    return next(same, None)


def _hex(raw: bytes) -> str:
    """Return bytes as figures, with what they would be in ASCII."""
    lines = []
    for at in range(0, len(raw), _ROW_BYTES):
        piece = raw[at : at + _ROW_BYTES]
        plain = "".join(chr(byte) if 0x20 <= byte < 0x7F else "·" for byte in piece)  # noqa: PLR2004
        lines.append(f"{at:05x}  {piece.hex(' '):<{3 * _ROW_BYTES - 1}}  {plain}")
    return "\n".join(lines)


def _owners(viewer: Viewer, found: Record) -> list[dict[str, Any]]:
    """Return the records of the first document with the text of a dropped one."""
    owner = viewer.similarity.owner(found.values["text"])
    here = (found.table.generation.name, found.values["order"])
    if owner is None or (owner.generation, owner.order) == here:
        return []
    return _records_of(viewer, owner)


def _records_of(viewer: Viewer, signed: Signed) -> list[dict[str, Any]]:
    """Return the records of a document, each in short."""
    return [
        {
            "to": address("record", {"row": each.row}),
            "place": _place(each),
            "fate": "removed"
            if each.is_removed
            else f"{each.values.get('verdict')} {each.values.get('reason') or ''}",
            "document": document_address(viewer, each)
            if each.values.get("verdict") == "kept"
            else None,
            "similarity": f"{signed.similarity:.2f}",
        }
        for each in viewer.audit.by_order(AUDIT, signed.order, generation=signed.generation)
    ]


def document_address(viewer: Viewer, shown: Record) -> str | None:
    """Return the address of the document that a record was kept as."""
    source = shown.table.generation.sources.get(shown.table.entry.source)
    order = shown.values.get("order")
    if source is None or order is None:
        return None
    for split in (TRAIN, VALIDATION):
        entries = source.split(split)
        # Shard i of n holds the orders with (order * n) >> 64 == i.
        for entry in entries[(order * len(entries)) >> 64 :][:1]:
            shard = viewer.shards.shard(entry.path)
            orders = shard.documents["order"].chunk(0).to_numpy()
            first, end = (
                int(np.searchsorted(orders, np.uint64(order), s)) for s in ("left", "right")
            )
            for row in range(first, end):
                if is_of(shown, shard, row):
                    home = viewer.homes[entry.path]
                    values = {"source": home.source, "split": split, "n": home.first + row}
                    return address("document", values)
    return None


def _likes(viewer: Viewer, shown: Record) -> dict[str, Any]:
    """Return links to what is like a record."""
    similar = originals = None
    if viewer.similarity.has_slots and shown.values.get("tokens") is not None:
        values = {"generation": shown.table.generation.name, "order": shown.values["order"]}
        similar = address("similar", values)
    num_bytes = shown.values.get("bytes")
    if shown.values.get("reason") == "duplicate" and num_bytes is not None:
        values = {"verdict": "kept", "metric": "bytes", "least": num_bytes, "most": num_bytes}
        label = f"kept documents of {num_bytes:,} bytes"
        originals = {"to": address("records", values), "label": label}
    return {"similar": similar, "originals": originals}


def similar(viewer: Viewer, query: Query) -> Page:
    """Return the documents whose signatures are like that of one: its cluster."""
    names = [generation.name for generation in viewer.dataset.manifest.generations]
    generation = query.choice("generation", names)
    order = _order(query.text("order"))
    least = query.measure("least")
    least = 0.5 if least is None else least
    itself = Signed(generation=generation, order=order)
    sent = {"generation": generation, "order": order}
    values: dict[str, Any] = {"itself": _records_of(viewer, itself), "found": None}
    slots = viewer.similarity.slots(generation, order)
    if slots is not None:
        start = query.number("at")
        found = viewer.similarity.similar(slots, least=least, start=start, budget=viewer.budget())
        if start > found.total:
            raise BadQuery(f"There are {found.total:,} signatures: at {start:,} there is nothing.")
        others = [
            each for each in found.hits if (each.generation, each.order) != (generation, order)
        ]
        shown = sorted(others, key=lambda each: -each.similarity)[:_MOST_SIMILAR]
        values |= {
            "found": found,
            "others": [each for signed in shown for each in _records_of(viewer, signed)],
            "least": least,
            "sent": sent,
            "more": address("similar", {**sent, "least": least, "at": found.at}),
        }
    return Page(template="similar", title="Similar documents", values=values)


def _order(text: str) -> int:
    """Return the order of a document, which may have more digits than other numbers."""
    most = 20
    if not (text.isascii() and text.isdigit() and len(text) <= most and int(text) < 2**64):
        raise BadQuery("The order of a document is a whole number below 2 to the power of 64.")
    return int(text)
