"""Documents in shards, a page of them at a time: all in order, or those that are looked for."""

import hashlib
import re
from typing import Any

from shards.manifest import TRAIN, VALIDATION
from shards.reader import Shard
from shards.view.html import Page, Redirect, address
from shards.view.query import BadQuery, Query
from shards.view.search import MATCHES, Place, Selection, Wanted
from shards.view.viewer import Viewer

PER_PAGE = 20
_SNIPPET_TOKENS = 80
_BEFORE = 20
"""Tokens that a snippet shows before the words that were found."""

SPLITS = (TRAIN, VALIDATION)


def documents(viewer: Viewer, query: Query) -> Page:
    """Return a page of documents."""
    selection, wanted = selection_of(viewer, query), _wanted(query)
    sent = {
        **selected(selection),
        **vars(wanted),
        "match": wanted.match if wanted.column else "",
    }
    total = viewer.shards.total(selection)
    start = query.number("at", below=max(total, 1))
    found = viewer.shards.search(
        selection, wanted, start=start, most=PER_PAGE, budget=viewer.budget()
    )
    before = max(start - PER_PAGE, 0) or None
    values = {
        "selection": selection,
        "selected": selected(selection),
        "wanted": wanted,
        "total": total,
        "all_sources": viewer.dataset.sources,
        "splits": SPLITS,
        "columns": viewer.shards.text_columns(selection),
        "matches": MATCHES,
        "items": [_item(viewer, selection, place, wanted) for place in found.hits],
        "found": found,
        "more": address("documents", {**sent, "at": found.at}),
        "around": {
            "first": address("documents", sent) if start else None,
            "previous": address("documents", {**sent, "at": before}) if start else None,
            "next": address("documents", {**sent, "at": found.at}) if found.at < total else None,
        },
    }
    return Page(template="documents", title="Documents", values=values)


def selection_of(viewer: Viewer, query: Query) -> Selection:
    """Return the documents that an address is about.

    Raises:
        BadQuery: There is no such source or shard.
    """
    shard = query.text("shard").strip()
    if shard:
        home = viewer.homes.get(shard)
        if home is None:
            raise BadQuery(
                "There is no such shard in this dataset: its name is a path such as "
                "g0001-3f9c12ab/wudao/00000, as a document's page shows it."
            )
        return Selection(source=home.source, split=home.split, shard=shard)
    source = query.choice("source", viewer.dataset.sources)
    return Selection(source=source or None, split=query.choice("split", SPLITS, TRAIN))


def selected(selection: Selection) -> dict[str, Any]:
    """Return the values of an address that stand for a selection."""
    if selection.shard:
        return {"shard": selection.shard}
    split = "" if selection.split == TRAIN else selection.split
    return {"source": selection.source, "split": split}


def _wanted(query: Query) -> Wanted:
    column, value = query.text("column"), query.text("value")
    if bool(column) != bool(value):
        raise BadQuery("Give both a column and the value that it is to have, or neither.")
    return Wanted(
        name=query.text("name").strip(),
        language=query.text("language").strip(),
        column=column,
        value=value,
        match=query.choice("match", MATCHES, MATCHES[0]),
        words=query.text("words"),
    )


def _item(viewer: Viewer, selection: Selection, place: Place, wanted: Wanted) -> dict[str, Any]:
    shard = viewer.shards.shard(place.entry.path)
    token = place.token if wanted.words else None
    values = {**selected(selection), "n": place.number, "token": token}
    is_removed = place.row in shard.removed
    return {
        "number": place.number,
        "to": address("document", values, part="" if token is None else "token"),
        "about": _about(shard, place.row, is_removed=is_removed),
        "parts": None if is_removed else marked(snippet(viewer, shard, place), wanted.words),
    }


def _about(shard: Shard, row: int, *, is_removed: bool) -> str:
    """Return a line about a document: tokens, language, its place in the input."""
    names = ("path", "position") if is_removed else ("language", "path", "position", "id", "url")
    columns = shard.documents.column_names
    found = [(name, shard.value(name, row)) for name in names if name in columns]
    cells = [f"{name} {value}" for name, value in found if value not in (None, "")]
    return " · ".join([f"{int(shard.lengths[row]):,} tokens", *cells])


def snippet(viewer: Viewer, shard: Shard, place: Place) -> str:
    """Return the beginning of a document, or what is around the words that were found."""
    tokens = shard[place.row]
    if len(tokens) and viewer.dataset.vocabulary.special[int(tokens[-1])]:
        tokens = tokens[:-1]  # the end of the document
    first = max(place.token - _BEFORE, 0)
    piece = tokens[first : first + _SNIPPET_TOKENS]
    text = viewer.dataset.vocabulary.decode_bytes(piece).decode(errors="ignore")
    more = " …" if first + len(piece) < len(tokens) else ""
    return f"{'… ' if first else ''}{text}{more}"


def marked(text: str, words: str) -> list[str]:
    """Return a text in parts, of which every second one is the words that are to be marked."""
    if not words:
        return [text]
    return re.split(f"({re.escape(words)})", text, flags=re.IGNORECASE | re.ASCII)


def random(viewer: Viewer, query: Query) -> Redirect:
    """Return a document that a seed decides."""
    selection, seed = selection_of(viewer, query), query.number("seed")
    total = viewer.shards.total(selection)
    if not total:
        raise BadQuery("There is no document to choose from.")
    digest = hashlib.blake2b(str(seed).encode(), digest_size=16).digest()
    number = int.from_bytes(digest, "little") % total
    return Redirect(to=address("document", {**selected(selection), "n": number, "seed": seed}))


def token(viewer: Viewer, query: Query) -> Redirect:
    """Return the document that a token of a shard belongs to."""
    selection = selection_of(viewer, query)
    if not selection.shard:
        raise BadQuery("Give a shard, such as g0001-3f9c12ab/wudao/00000, and a token in it.")
    shard = viewer.shards.shard(selection.shard)
    offset = query.number("offset", below=shard.entry.tokens)
    row = int(shard.offsets.searchsorted(offset, side="right")) - 1
    values = {**selected(selection), "n": row, "token": offset - int(shard.offsets[row])}
    return Redirect(to=address("document", values, part="token"))
