"""One document: its text in pieces, each of which leads back to where it comes from."""

import codecs
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from shards.reader import Shard
from shards.trace import ORIGIN
from shards.view.address import Query
from shards.view.audit import AUDIT, Record
from shards.view.kept import Place, Selection
from shards.view.markup import Address, Child, Markup, address, between, joined, link, tag
from shards.view.pages.documents import selected, selection_of
from shards.view.pages.page import Page, heading, pairs, section, steps
from shards.view.viewer import Viewer
from shards.view.wording import both, either
from shards.vocabulary import Vocabulary

PART_TOKENS = 2048
"""Tokens of a document that a page shows."""

_MOST_JOINED = 8
"""Tokens that one character is made of at most."""

_HIDDEN = "The document was removed: its text is not shown."
_HIDDEN_CHINESE = "该文档已被移除，文本不予显示。"


class Piece(NamedTuple):
    """Tokens whose bytes are whole characters."""

    first: int
    """Its first token, counted in the document."""
    ids: list[int]
    text: str
    special: bool


def document(viewer: Viewer, query: Query) -> Page:
    """Return a document of a selection."""
    selection = selection_of(viewer, query)
    total = viewer.kept.total(selection)
    number = query.number("n", below=total)
    place = viewer.kept.place(selection, number)
    shard = viewer.kept.shard(place.entry.path)
    body = [
        heading("Document", f" {number:,}"),
        _around(selection, number, total, query),
    ]
    if place.row in shard.removed:
        body.append(tag("p", _HIDDEN, " ", tag("span", _HIDDEN_CHINESE, lang="zh"), class_="warn"))
    else:
        body += _text(viewer, shard, place, selection, query)
    body.append(section("Origin", _origin(viewer, shard, place)))
    body += _verdict(viewer, shard, place)
    return Page(title=f"Document {number:,}", body=joined(body))


def _around(selection: Selection, number: int, total: int, query: Query) -> Markup:
    def at(number: int) -> Address:
        return address("document", {**selected(selection), "n": number})

    seed = query.number("seed") + 1 if query.text("seed") else 0
    return steps(
        {
            "previous": at(number - 1) if number else None,
            "next": at(number + 1) if number + 1 < total else None,
            "random": address("random", {**selected(selection), "seed": str(seed)}),
        }
    )


def _text(
    viewer: Viewer, shard: Shard, place: Place, selection: Selection, query: Query
) -> Iterator[Markup]:
    """Yield the token that was asked for, if one was, and a part of the text."""
    tokens = shard[place.row]
    chosen = query.number("token", below=len(tokens)) if query.text("token") else None
    num_parts = -(-len(tokens) // PART_TOKENS)
    asked = 0 if chosen is None else chosen // PART_TOKENS
    part = query.number("part", asked, below=max(num_parts, 1))
    values = {**selected(selection), "n": place.number, "part": part or None}
    first = part * PART_TOKENS
    vocabulary = viewer.dataset.vocabulary
    ids = tokens[first : first + PART_TOKENS].view(f"u{tokens.itemsize}").tolist()
    if ids and max(ids) >= len(vocabulary):
        raise shard.damage("bin", f"the token {max(ids)} is outside the vocabulary")
    pieces = list(pieces_of(vocabulary, ids, first=first))
    texts = ["", *(piece.text for piece in pieces), ""]
    prompt = int(shard.prompts[place.row])
    links = [
        _piece(piece, between(*texts[i : i + 3]), chosen, values, prompt=prompt)
        for i, piece in enumerate(pieces)
    ]
    yield section("Text", tag("div", links, class_="text tokens", dir="auto"))
    if num_parts > 1:
        note = f"Part {part + 1:,} of {num_parts:,}, {PART_TOKENS:,} tokens each"
        yield tag("p", note, class_="note")
        yield _parts(values, part, num_parts)
    if chosen is not None:
        yield section("Token", _token(viewer, shard, place, chosen), id_="token-panel")


def _parts(values: dict[str, Any], part: int, num_parts: int) -> Markup:
    links: list[Child] = []
    for label, number in (("previous", part - 1), ("next", part + 1)):
        if 0 <= number < num_parts:
            links += [link(address("document", {**values, "part": str(number)}), both(label)), " "]
    return tag("p", links, class_="steps")


def pieces_of(vocabulary: Vocabulary, ids: Sequence[int], *, first: int) -> Iterator[Piece]:
    """Yield tokens in pieces of whole characters: one of several tokens is a piece.

    Args:
        vocabulary: Of the dataset.
        ids: The tokens.
        first: The number of the first one in its document.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    waiting: list[int] = []
    text = ""
    for number, token in enumerate(ids, first):
        special = bool(vocabulary.special[token])
        if waiting and (special or len(waiting) == _MOST_JOINED):
            yield Piece(number - len(waiting), waiting, text + decoder.decode(b"", True), False)
            decoder.reset()
            waiting, text = [], ""
        content = vocabulary.decode_bytes([token])
        if special:
            yield Piece(number, [token], content.decode(errors="replace"), True)
            continue
        waiting.append(token)
        text += decoder.decode(content)
        if not decoder.getstate()[0]:
            yield Piece(number + 1 - len(waiting), waiting, text, False)
            waiting, text = [], ""
    if waiting:
        end = first + len(ids)
        yield Piece(end - len(waiting), waiting, text + decoder.decode(b"", True), False)


def _piece(
    piece: Piece, shown: Markup, chosen: int | None, values: dict[str, Any], *, prompt: int
) -> Markup:
    is_chosen = chosen is not None and piece.first <= chosen < piece.first + len(piece.ids)
    classes = [
        name
        for name, applies in (
            ("chosen", is_chosen),
            ("special", piece.special),
            ("prompt", piece.first < prompt),
            ("odd", piece.first % 2),
        )
        if applies
    ]
    to = address("document", {**values, "token": str(piece.first)}, part="token")
    return link(
        to,
        shown,
        title=f"{either('token')} {piece.first:,}: {' '.join(map(str, piece.ids))}",
        class_=" ".join(classes) or None,
        id="token" if is_chosen else None,
    )


def _token(viewer: Viewer, shard: Shard, place: Place, number: int) -> Markup:
    """Return all that is known of a token: from its place in the shard back to its record."""
    tokens = shard[place.row]
    vocabulary = viewer.dataset.vocabulary
    token = int(tokens[number])
    content = vocabulary.decode_bytes([token])
    offset = int(shard.offsets[place.row]) + number
    special = bool(vocabulary.special[token])
    values: dict[str, Child] = {
        "id": f"{token}{', special' if special else ''}",
        "text": tag("code", content.decode(errors="replace")),
        "bytes": tag("code", content.hex(" ") if not special else "none: it is no text"),
        "in the document": f"token {number:,} of {len(tokens):,}",
        "in the shard": f"token {offset:,} of {shard.entry.tokens:,}",
        "in the file": f"{place.entry.path}.bin, byte {offset * shard.tokens.itemsize:,}",
        "loss": "no: it belongs to the prompt" if number < int(shard.prompts[place.row]) else "yes",
        "input": _record(shard, place.row),
    }
    return pairs(values)


def _record(shard: Shard, row: int) -> str:
    columns = shard.documents.column_names
    if "path" not in columns or "position" not in columns:
        return "not recorded"
    path, position = shard.value("path", row), shard.value("position", row)
    ordinal = shard.value("ordinal", row) if "ordinal" in columns else 0
    more = f", document {ordinal} of the record" if ordinal else ""
    return f"{path}, position {position:,}{more}" if position is not None else str(path)


def _origin(viewer: Viewer, shard: Shard, place: Place) -> Markup:
    """Return where a document is and where it comes from; of a removed one only that."""
    home = viewer.homes[place.entry.path]
    values: dict[str, Child] = {
        "shard": f"{place.entry.path}:{place.row}",
        "source": f"{home.source}, {home.split}",
        "input": _record(shard, place.row),
    }
    removed = place.row in shard.removed
    for name in shard.documents.column_names:
        if not removed or name in ORIGIN:
            value = shard.value(name, place.row)
            values.setdefault(name, "" if value is None else str(value))
    return pairs(values)


def _verdict(viewer: Viewer, shard: Shard, place: Place) -> Iterator[Markup]:
    """Yield the metrics of a document from its row of the audit table, and what is like it."""
    if place.row in shard.removed:
        return
    home = viewer.homes[place.entry.path]
    order = int(shard.value("order", place.row))
    record = _audited(viewer, shard, place, order)
    if record is not None:
        metrics = {
            name: f"{value:g}" for name, value in record.values.items() if isinstance(value, float)
        }
        more = link(address("record", record.where), both("Record"))
        yield section("Metrics", pairs(metrics), tag("p", more, class_="steps"))
    if "bytes" in shard.documents.column_names and viewer.audit.tables[AUDIT]:
        num_bytes = shard.value("bytes", place.row)
        wanted = {"reason": "duplicate", "metric": "bytes", "least": num_bytes, "most": num_bytes}
        text = f"dropped duplicates of {num_bytes:,} bytes"
        yield tag("p", link(address("records", wanted), text), class_="steps")
    if viewer.alike.has_slots:
        values = {"generation": home.generation.name, "order": order}
        to = address("similar", values)
        yield tag("p", link(to, both("Similar documents")), class_="steps")


def _audited(viewer: Viewer, shard: Shard, place: Place, order: int) -> Record | None:
    """Return the audit row of a document, if there is one."""
    home = viewer.homes[place.entry.path]
    names = [n for n in ("path", "position", "ordinal") if n in shard.documents.column_names]
    wanted = [shard.value(name, place.row) for name in names]
    records = viewer.audit.by_order(
        AUDIT, order, generation=home.generation.name, source=home.source
    )
    same = (each for each in records if [each.values.get(name) for name in names] == wanted)
    return next(same, None)
