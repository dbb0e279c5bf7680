"""Records of the inputs: what became of them, and the texts of those that were dropped."""

from collections.abc import Iterator, Mapping
from typing import Any

from shards.manifest import TRAIN, VALIDATION
from shards.view.address import BadQuery, Query
from shards.view.alike import Signed
from shards.view.audit import AUDIT, DROPPED, REJECTS, VERDICTS, Filter, Record
from shards.view.markup import Address, Child, Markup, address, joined, link, tag
from shards.view.pages.page import (
    Page,
    Redirect,
    choice,
    entry,
    exact,
    field,
    form,
    heading,
    pairs,
    progress,
    section,
    steps,
    table,
)
from shards.view.scan import Found
from shards.view.viewer import Viewer
from shards.view.wording import both

_PER_PAGE = 50
_MOST_SIMILAR = 50
_MOST_CHARACTERS = 100_000
"""Of a text that a page shows."""
_REMOVED = "The document made from this record was removed: its other columns are not shown."
_RAW_BYTES = 16 * 1024
_ROW_BYTES = 16


def records(viewer: Viewer, query: Query) -> Page:
    """Return a page of the records that are looked for."""
    wanted = _filter(viewer, query)
    found = viewer.audit.search(
        wanted, start=query.number("at"), most=_PER_PAGE, budget=viewer.budget()
    )
    head = ["record", "verdict", "reason", "source", "language", "group", "bytes", "tokens"]
    head += [wanted.metric] if wanted.metric not in ("", "bytes", "tokens") else []
    rows = [_row(record, wanted, head) for record in found.hits]
    is_open = (
        None if (wanted.columns or wanted.source or wanted.generation) and not wanted.metric else ""
    )
    body = joined(
        heading("Records"),
        tag("details", tag("summary", both("Filter")), _form(viewer, wanted), open=is_open),
        _leaf(found, wanted),
        table(head, rows, words=6),
        progress(found, what="records", to=address("records", {**vars(wanted), "at": found.at})),
    )
    return Page(title="Records", body=body)


def following(viewer: Viewer, query: Query) -> Page | Redirect:
    """Return the first record that is looked for, from a row on; the list if none is near."""
    wanted = _filter(viewer, query)
    found = viewer.audit.search(wanted, start=query.number("at"), most=1, budget=viewer.budget())
    if found.hits:
        return Redirect(to=_record_address(found.hits[0], wanted))
    return Redirect(to=address("records", {**vars(wanted), "at": found.at}))


def _leaf(found: Found[Record], wanted: Filter) -> Markup | None:
    """Return a link to the first hit: from there on they are shown one by one."""
    if not found.hits:
        return None
    to = _record_address(found.hits[0], wanted)
    return tag("p", link(to, "one by one ", tag("span", "逐条查看", lang="zh")), class_="steps")


def _record_address(record: Record, wanted: Filter) -> Address:
    return address("record", {**vars(wanted), **record.where})


def _filter(viewer: Viewer, query: Query) -> Filter:
    """Return what an address looks for.

    Raises:
        BadQuery: There is no such thing.
    """
    manifest = viewer.dataset.manifest
    source = query.choice("source", viewer.dataset.sources)
    metric = query.choice("metric", viewer.audit.metrics(source))
    least, most = query.measure("least"), query.measure("most")
    if metric == "" and (least is not None or most is not None):
        raise BadQuery("Name the metric that the two numbers are about.")
    names = [generation.name for generation in manifest.generations]
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


def _form(viewer: Viewer, wanted: Filter) -> Markup:
    return joined(_record_form(viewer, wanted), _span(viewer, wanted))


def _span(viewer: Viewer, wanted: Filter) -> Markup | None:
    """Return what values a metric has, for who is to choose a range of them."""
    span = viewer.audit.span(wanted.metric, wanted.source) if wanted.metric else None
    if span is None:
        return None
    text = f"{wanted.metric} is {exact(span[0])} to {exact(span[1])} in the newest table."
    return tag("p", text, class_="note")


def _record_form(viewer: Viewer, wanted: Filter) -> Markup:
    def number(value: float | None) -> str:
        return "" if value is None else exact(value)

    generations = [each.name for each in viewer.dataset.manifest.generations]
    return form(
        "records",
        field("source", choice("source", wanted.source, viewer.dataset.sources)),
        field("generation", choice("generation", wanted.generation, generations)),
        field("verdict", choice("verdict", wanted.verdict, VERDICTS)),
        field("reason", choice("reason", wanted.reason, _reasons(viewer, wanted))),
        field("group", entry("group", wanted.group)),
        field("language", entry("language", wanted.language)),
        field("metric", choice("metric", wanted.metric, viewer.audit.metrics(wanted.source))),
        field("from", entry("least", number(wanted.least), kind="number")),
        field("to", entry("most", number(wanted.most), kind="number")),
    )


def _reasons(viewer: Viewer, wanted: Filter) -> list[str]:
    """Return the reasons of the accounting, and the one that is looked for."""
    found = {wanted.reason} - {""}
    for generation in viewer.dataset.manifest.generations:
        for account in generation.accounting.values():
            for verdict in ("dropped", "quarantined"):
                reasons = account.get(verdict) if isinstance(account, Mapping) else None
                found |= set(reasons) if isinstance(reasons, Mapping) else set()
    return sorted(found)


def _row(record: Record, wanted: Filter, head: list[str]) -> list[Child]:
    values = record.values
    place = f"{values.get('path')}:{values.get('position')}"
    shown: dict[str, Child] = {
        **values,
        "reason": "removed" if record.is_removed else values.get("reason"),
        "source": record.table.entry.source,
        "record": link(_record_address(record, wanted), place),
    }
    return [_cell(shown.get(name)) for name in head]


def _cell(value: Any) -> Child:
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value)
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else value


def record(viewer: Viewer, query: Query) -> Page:
    """Return all that is known of a record, with its text or bytes where they were kept."""
    shown = viewer.audit.record(AUDIT, query.number("table"), query.number("row"))
    wanted = _filter(viewer, query)
    after = {**vars(wanted), "at": shown.table.first + shown.row + 1}
    values = shown.values
    facts: dict[str, Child] = {
        name: _cell(value)
        for name, value in values.items()
        if value not in (None, "") and not isinstance(value, float)
    }
    facts["order"] = str(values.get("order"))
    metrics = {name: _cell(each) for name, each in values.items() if isinstance(each, float)}
    verdict = "removed" if shown.is_removed else values.get("reason") or values.get("verdict")
    body = [
        heading("Record", f" {verdict}"),
        steps({"next": address("next", after)}),
        tag("p", _REMOVED, class_="warn") if shown.is_removed else Markup(),
        *_contents(viewer, shown),
        section("Origin", pairs({"source": shown.table.entry.source, **facts})),
        section("Metrics", pairs(metrics)) if metrics else Markup(),
        *_likes(viewer, shown),
    ]
    return Page(title=f"Record {verdict}", body=joined(body))


def _contents(viewer: Viewer, shown: Record) -> Iterator[Markup]:
    """Yield the text or the bytes of a record, whatever of it the dataset has."""
    verdict = shown.values.get("verdict")
    if verdict == "kept":
        to = document_address(viewer, shown)
        if to is not None:
            yield tag("p", link(to, both("Document")), class_="steps")
        return
    found = _same(viewer, DROPPED if verdict == "dropped" else REJECTS, shown)
    if found is None:
        hint = " Build with --keep-dropped to have the texts." if verdict == "dropped" else ""
        yield tag("p", f"The dataset does not have its text.{hint}", class_="note")
        return
    if why := viewer.hidden.reason(found):
        yield tag("p", f"Its text is not shown: {why}.", class_="warn")
        return
    if found.values.get("text") is not None:
        yield section("Text", *_shown_text(found.values["text"]))
        yield from _owner(viewer, found)
    if found.values.get("raw") is not None:
        yield section("Raw bytes", *_shown_bytes(found.values["raw"]))


def _same(viewer: Viewer, kind: str, shown: Record) -> Record | None:
    """Return the row of another table about the same document."""
    order = shown.values.get("order")
    if order is None:
        return None
    records = viewer.audit.by_order(
        kind, order, generation=shown.table.generation.name, source=shown.table.entry.source
    )
    names = ("path", "position") if kind == REJECTS else ("path", "position", "ordinal")
    return next(
        (
            each
            for each in records
            if all(each.values.get(name) == shown.values.get(name) for name in names)
        ),
        None,
    )


def _shown_text(text: str) -> Iterator[Markup]:
    yield tag("div", text[:_MOST_CHARACTERS], class_="text", dir="auto")
    if len(text) > _MOST_CHARACTERS:
        yield tag("p", f"The first {_MOST_CHARACTERS:,} of {len(text):,} characters", class_="note")


def _shown_bytes(raw: bytes) -> Iterator[Markup]:
    """Yield bytes as text, and as figures with what they would be in ASCII."""
    head = raw[:_RAW_BYTES]
    yield tag("div", head.decode(errors="backslashreplace"), class_="text raw", dir="auto")
    lines = []
    for at in range(0, min(len(head), 1024), _ROW_BYTES):
        piece = head[at : at + _ROW_BYTES]
        plain = "".join(chr(byte) if 0x20 <= byte < 0x7F else "·" for byte in piece)  # noqa: PLR2004
        lines.append(f"{at:05x}  {piece.hex(' '):<{3 * _ROW_BYTES - 1}}  {plain}")
    dump = tag("pre", "\n".join(lines))
    yield tag("details", tag("summary", "hex"), tag("div", dump, class_="wide", tabindex="0"))
    if len(raw) > len(head):
        yield tag("p", f"The first {len(head):,} of {len(raw):,} bytes", class_="note")


def _owner(viewer: Viewer, found: Record) -> Iterator[Markup]:
    """Yield a link to the first document with the text of a dropped one."""
    owner = viewer.alike.owner(found.values["text"])
    if owner is None:
        return
    if owner.order == found.values["order"] and owner.generation == found.table.generation.name:
        return
    cells = [_named(viewer, each) for each in _records_of(viewer, owner)]
    yield section("Equal text", tag("p", "First seen in: ", cells))


def _records_of(viewer: Viewer, signed: Signed) -> list[Record]:
    return list(viewer.audit.by_order(AUDIT, signed.order, generation=signed.generation))


def _named(viewer: Viewer, each: Record) -> Markup:
    """Return a link to a record, and to its document if it was kept."""
    place = f"{each.values.get('path')}:{each.values.get('position')}"
    shown = joined(
        link(address("record", each.where), place),
        f" {each.values.get('verdict')} ",
        "removed " if each.is_removed else f"{each.values.get('reason') or ''} ",
    )
    to = document_address(viewer, each) if each.values.get("verdict") == "kept" else None
    return joined(shown, link(to, both("Document")) if to else None)


def document_address(viewer: Viewer, shown: Record) -> Address | None:
    """Return the address of the document that a record was kept as."""
    source = shown.table.generation.sources.get(shown.table.entry.source)
    order = shown.values.get("order")
    if source is None or order is None:
        return None
    for split in (TRAIN, VALIDATION):
        entries = source.split(split)
        # Shard i of n holds the orders with (order * n) >> 64 == i.
        for each in entries[(order * len(entries)) >> 64 :][:1]:
            row = _row_of(viewer, each.path, shown)
            if row is not None:
                home = viewer.homes[each.path]
                number = home.first + row
                return address("document", {"source": home.source, "split": split, "n": number})
    return None


def _row_of(viewer: Viewer, path: str, shown: Record) -> int | None:
    """Return the row of a shard that has the order and place of a record; orders are sorted."""
    shard = viewer.kept.shard(path)
    orders = shard.documents["order"].chunk(0).to_numpy()
    order = shown.values["order"]
    names = [n for n in ("path", "position", "ordinal") if n in shard.documents.column_names]
    row = int(orders.searchsorted(orders.dtype.type(order)))
    while row < len(shard) and int(orders[row]) == order:
        if all(shard.value(name, row) == shown.values.get(name) for name in names):
            return row
        row += 1
    return None


def _likes(viewer: Viewer, shown: Record) -> Iterator[Markup]:
    """Yield links to what is like a record."""
    if viewer.alike.has_slots and shown.values.get("tokens") is not None:
        values = {"generation": shown.table.generation.name, "order": shown.values["order"]}
        to = address("similar", values)
        yield tag("p", link(to, both("Similar documents")), class_="steps")
    num_bytes = shown.values.get("bytes")
    if shown.values.get("reason") == "duplicate" and num_bytes is not None:
        values = {"verdict": "kept", "metric": "bytes", "least": num_bytes, "most": num_bytes}
        text = f"kept documents of {num_bytes:,} bytes"
        yield tag("p", link(address("records", values), text), class_="steps")


def similar(viewer: Viewer, query: Query) -> Page:
    """Return the documents whose signatures are like that of one: its cluster."""
    names = [generation.name for generation in viewer.dataset.manifest.generations]
    generation = query.choice("generation", names)
    order = _order(query.text("order"))
    least = query.measure("least")
    least = 0.5 if least is None else least
    slots = viewer.alike.slots(generation, order)
    itself = Signed(generation=generation, order=order)
    body = [heading("Similar documents")]
    body += [tag("p", "To: ", [_named(viewer, each) for each in _records_of(viewer, itself)])]
    if slots is None:
        text = (
            "This document has no signature: it is too short, its text was known before, or the "
            "dataset was made without --dedup minhash."
        )
        return Page(title="Similar documents", body=joined(body, tag("p", text, class_="note")))
    found = viewer.alike.similar(
        slots, least=least, start=query.number("at"), budget=viewer.budget()
    )
    others = [each for each in found.hits if (each.generation, each.order) != (generation, order)]
    shown = sorted(others, key=lambda each: -each.similarity)[:_MOST_SIMILAR]
    rows = [
        [_named(viewer, each), f"{signed.similarity:.2f}"]
        for signed in shown
        for each in _records_of(viewer, signed)
    ]
    values = {"generation": generation, "order": order, "least": least}
    body += [
        form(
            "similar",
            field("similarity", entry("least", exact(least), kind="number")),
            kept={"generation": generation, "order": order},
        ),
        table(("Record", "similarity"), rows),
        progress(found, what="signatures", to=address("similar", {**values, "at": found.at})),
    ]
    return Page(title="Similar documents", body=joined(body))


def _order(text: str) -> int:
    """Return the order of a document, which may have more digits than other numbers."""
    most = 20
    if not (text.isascii() and text.isdigit() and len(text) <= most and int(text) < 2**64):
        raise BadQuery("The order of a document is a whole number below 2 to the power of 64.")
    return int(text)
