"""One document: its text in pieces, each of which leads back to where it comes from."""

import codecs
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from shards.reader import Shard
from shards.trace import ORIGIN
from shards.view.audit import AUDIT, Record
from shards.view.documents import selected, selection_of
from shards.view.html import Page, address, between
from shards.view.query import Query
from shards.view.search import Place, Selection
from shards.view.viewer import Viewer
from shards.vocabulary import Vocabulary

PART_TOKENS = 2048
"""Tokens of a document that a page shows."""

_MOST_JOINED = 8
"""Tokens that one character is made of at most."""

_IDENTITY = ("path", "position", "ordinal")
"""Columns that a document and its record have in common, besides the order."""


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
    total = viewer.shards.total(selection)
    number = query.number("n", below=total)
    place = viewer.shards.place(selection, number)
    shard = viewer.shards.shard(place.entry.path)
    is_removed = place.row in shard.removed
    values = {
        "number": number,
        "around": _around(selection, number, total, query),
        "text": None if is_removed else _text(viewer, shard, place, selection, query),
        "origin": _origin(viewer, shard, place, is_removed=is_removed),
        **dict.fromkeys(("metrics", "record", "copies", "similar")),
        **({} if is_removed else _verdict(viewer, shard, place)),
    }
    return Page(template="document", title=f"Document {number:,}", values=values)


def _around(selection: Selection, number: int, total: int, query: Query) -> dict[str, str | None]:
    sent = selected(selection)
    seed = query.number("seed") + 1 if query.text("seed") else 0
    after = number + 1
    return {
        "previous": address("document", {**sent, "n": number - 1}) if number else None,
        "next": address("document", {**sent, "n": after}) if after < total else None,
        "random": address("random", {**sent, "seed": seed}),
    }


def _text(
    viewer: Viewer, shard: Shard, place: Place, selection: Selection, query: Query
) -> dict[str, Any]:
    """Return a part of the text, and the token that was asked for, if one was."""
    tokens = shard[place.row]
    chosen = query.number("token", below=len(tokens)) if query.text("token") else None
    num_parts = -(-len(tokens) // PART_TOKENS)
    part = query.number("part", (chosen or 0) // PART_TOKENS, below=max(num_parts, 1))
    first = part * PART_TOKENS
    vocabulary = viewer.dataset.vocabulary
    ids = tokens[first : first + PART_TOKENS].view(f"u{tokens.itemsize}").tolist()
    if ids and max(ids) >= len(vocabulary):
        raise shard.damage("bin", f"the token {max(ids)} is outside the vocabulary")
    pieces = list(pieces_of(vocabulary, ids, first=first))
    texts = ["", *(piece.text for piece in pieces), ""]
    sent = {**selected(selection), "n": place.number, "part": part or None}
    shown = []
    for i, piece in enumerate(pieces):
        is_chosen = chosen is not None and piece.first <= chosen < piece.first + len(piece.ids)
        classes = {
            "chosen": is_chosen,
            "special": piece.special,
            "prompt": piece.first < shard.prompts[place.row],
            "odd": piece.first % 2,
        }
        shown.append(
            {
                **piece._asdict(),
                "to": address("document", {**sent, "token": piece.first}, part="token"),
                "shown": between(*texts[i : i + 3]),
                "classes": " ".join(name for name, applies in classes.items() if applies),
                "is_chosen": is_chosen,
            }
        )
    return {
        "pieces": shown,
        "part": part,
        "num_parts": num_parts,
        "part_tokens": PART_TOKENS,
        "sent": sent,
        "token": None if chosen is None else _token(viewer, shard, place, chosen),
    }


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


def _token(viewer: Viewer, shard: Shard, place: Place, number: int) -> dict[str, str]:
    """Return all that is known of a token: from its place in the shard back to its record."""
    tokens = shard[place.row]
    vocabulary = viewer.dataset.vocabulary
    token = int(tokens[number])
    content = vocabulary.decode_bytes([token])
    offset = int(shard.offsets[place.row]) + number
    special = bool(vocabulary.special[token])
    return {
        "id": f"{token}{', special' if special else ''}",
        "text": content.decode(errors="replace"),
        "bytes": content.hex(" ") if not special else "none: it is no text",
        "in the document": f"token {number:,} of {len(tokens):,}",
        "in the shard": f"token {offset:,} of {shard.entry.tokens:,}",
        "in the file": f"{place.entry.path}.bin, byte {offset * shard.tokens.itemsize:,}",
        "loss": "no: it belongs to the prompt" if number < int(shard.prompts[place.row]) else "yes",
        "input": _input(shard, place.row),
    }


def _input(shard: Shard, row: int) -> str:
    columns = shard.documents.column_names
    if "path" not in columns or "position" not in columns:
        return "not recorded"
    path, position = shard.value("path", row), shard.value("position", row)
    ordinal = shard.value("ordinal", row) if "ordinal" in columns else 0
    more = f", document {ordinal} of the record" if ordinal else ""
    return f"{path}, position {position:,}{more}" if position is not None else str(path)


def _origin(viewer: Viewer, shard: Shard, place: Place, *, is_removed: bool) -> dict[str, str]:
    """Return where a document is and where it comes from; of a removed one only that."""
    home = viewer.homes[place.entry.path]
    values = {
        "shard": f"{place.entry.path}:{place.row}",
        "source": f"{home.source}, {home.split}",
        "input": _input(shard, place.row),
    }
    for name in shard.documents.column_names:
        if not is_removed or name in ORIGIN:
            value = shard.value(name, place.row)
            values.setdefault(name, "" if value is None else str(value))
    return values


def _verdict(viewer: Viewer, shard: Shard, place: Place) -> dict[str, Any]:
    """Return the metrics of a document from its audit row, and links to what is like it."""
    generation = viewer.homes[place.entry.path].generation.name
    order = int(shard.value("order", place.row))
    found: dict[str, Any] = {}
    record = _audited(viewer, shard, place, order)
    if record is not None:
        metrics = {name: each for name, each in record.values.items() if isinstance(each, float)}
        found["metrics"] = {name: f"{value:g}" for name, value in metrics.items()}
        found["record"] = address("record", {"row": record.row})
    if "bytes" in shard.documents.column_names and viewer.audit.tables[AUDIT]:
        num_bytes = shard.value("bytes", place.row)
        wanted = {"reason": "duplicate", "metric": "bytes", "least": num_bytes, "most": num_bytes}
        label = f"dropped duplicates of {num_bytes:,} bytes"
        found["copies"] = {"to": address("records", wanted), "label": label}
    if viewer.similarity.has_slots:
        found["similar"] = address("similar", {"generation": generation, "order": order})
    return found


def _audited(viewer: Viewer, shard: Shard, place: Place, order: int) -> Record | None:
    """Return the audit row of a document, if there is one."""
    home = viewer.homes[place.entry.path]
    records = viewer.audit.by_order(
        AUDIT, order, generation=home.generation.name, source=home.source
    )
    return next((each for each in records if is_of(each, shard, place.row)), None)


def is_of(record: Record, shard: Shard, row: int) -> bool:
    """Return whether a document was made from a record with the same order."""
    names = [name for name in _IDENTITY if name in shard.documents.column_names]
    return all(shard.value(name, row) == record.values.get(name) for name in names)
