"""Documents in shards, a page of them at a time: all in order, or those that are looked for."""

import hashlib
import re
from typing import Any

from shards.manifest import TRAIN, VALIDATION
from shards.reader import Shard
from shards.view.address import BadQuery, Query
from shards.view.kept import MATCHES, Place, Selection, Wanted
from shards.view.markup import Address, Markup, address, joined, link, tag
from shards.view.pages.page import (
    Page,
    Redirect,
    choice,
    entry,
    field,
    form,
    heading,
    progress,
    steps,
)
from shards.view.viewer import Viewer
from shards.view.wording import both

PER_PAGE = 20
_SNIPPET_TOKENS = 80
_BEFORE = 20
"""Tokens that a snippet shows before the words that were found."""

SPLITS = (TRAIN, VALIDATION)


def documents(viewer: Viewer, query: Query) -> Page:
    """Return a page of documents."""
    selection, wanted = selection_of(viewer, query), _wanted(query)
    values = _values(selection, wanted)
    total = viewer.kept.total(selection)
    start = query.number("at")
    body: list[Markup] = [heading("Documents"), _forms(viewer, selection, wanted, total)]
    if total and start >= total:
        raise BadQuery(f"There is no document {start:,}: there are {total:,}, counted from 0.")
    budget = viewer.budget()
    found = viewer.kept.search(selection, wanted, start=start, most=PER_PAGE, budget=budget)
    body.append(tag("div", [_item(viewer, selection, place, wanted) for place in found.hits]))
    more = address("documents", {**values, "at": found.at})
    if wanted.is_all:
        body.append(_pages(values, start, found.at, total))
    else:
        body.append(progress(found, what="documents", to=more))
    return Page(title="Documents", body=joined(body))


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


def _values(selection: Selection, wanted: Wanted) -> dict[str, Any]:
    match = wanted.match if wanted.column else ""
    return {**selected(selection), **vars(wanted), "match": match}


def _forms(viewer: Viewer, selection: Selection, wanted: Wanted, total: int) -> Markup:
    columns = viewer.kept.text_columns(selection)
    search = form(
        "documents",
        field("source", choice("source", selection.source or "", viewer.dataset.sources)),
        field("split", choice("split", selection.split, SPLITS, none="")),
        field("words in the text", entry("words", wanted.words)),
        field("id, URL or place", entry("name", wanted.name)),
        field("language", entry("language", wanted.language)),
        field("column", choice("column", wanted.column, columns, none="any")),
        field("matched by", choice("match", wanted.match, MATCHES, none="")),
        field("value", entry("value", wanted.value)),
    )
    jump = form(
        "document",
        field("number", entry("n", "", kind="number")),
        kept=selected(selection),
    )
    token = form(
        "token",
        field("shard", entry("shard", selection.shard)),
        field("token", entry("offset", "", kind="number")),
    )
    is_open = None if wanted.is_all else ""
    return joined(
        tag("p", tag("b", f"{total:,}"), " ", both("documents"), _of(selection)),
        steps({"random": address("random", {**selected(selection), "seed": "0"})}),
        tag("details", tag("summary", both("Search")), search, open=is_open),
        tag("details", tag("summary", both("Go to")), jump, token),
    )


def _of(selection: Selection) -> str:
    return f" · {selection.shard}" if selection.shard else ""


def _pages(values: dict[str, Any], start: int, after: int, total: int) -> Markup:
    def at(number: int) -> Address:
        return address("documents", {**values, "at": number or None})

    return steps(
        {
            "first": at(0) if start else None,
            "previous": at(max(start - PER_PAGE, 0)) if start else None,
            "next": at(after) if after < total else None,
        }
    )


def _item(viewer: Viewer, selection: Selection, place: Place, wanted: Wanted) -> Markup:
    shard = viewer.kept.shard(place.entry.path)
    token = place.token if wanted.words else None
    values = {**selected(selection), "n": place.number, "token": token}
    to = address("document", values, part="" if token is None else "token")
    if place.row in shard.removed:
        text = tag("p", both("removed"), class_="warn")
    else:
        shown = marked(snippet(viewer, shard, place), wanted.words)
        text = tag("p", shown, class_="text", dir="auto")
    head = tag("p", link(to, f"{place.number:,}"), " ", _about(shard, place.row), class_="about")
    return tag("article", head, text)


def _about(shard: Shard, row: int) -> Markup:
    """Return a line about a document: language, tokens, its place in the input."""
    full = ("language", "path", "position", "id", "url")
    names = full[1:3] if row in shard.removed else full
    columns = shard.documents.column_names
    found = [(name, shard.value(name, row)) for name in names if name in columns]
    cells = [f"{name} {value}" for name, value in found if value not in (None, "")]
    return joined(" · ".join([f"{int(shard.lengths[row]):,} tokens", *cells]))


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


def marked(text: str, words: str) -> Markup:
    """Return a text in which words are marked wherever they stand."""
    if not words:
        return joined(text)
    parts = re.split(f"({re.escape(words)})", text, flags=re.IGNORECASE | re.ASCII)
    return joined(tag("mark", part) if i % 2 else part for i, part in enumerate(parts))


def random(viewer: Viewer, query: Query) -> Redirect:
    """Return a document that a seed decides."""
    selection, seed = selection_of(viewer, query), query.number("seed")
    total = viewer.kept.total(selection)
    if not total:
        raise BadQuery("There is no document to choose from.")
    digest = hashlib.blake2b(str(seed).encode(), digest_size=16).digest()
    number = int.from_bytes(digest, "little") % total
    return Redirect(to=address("document", {**selected(selection), "n": number, "seed": seed}))


def token(viewer: Viewer, query: Query) -> Redirect:
    """Return the document that a token of a shard belongs to."""
    path = query.text("shard").strip()
    if not path:
        raise BadQuery("Give a shard, such as g0001-3f9c12ab/wudao/00000, and a token in it.")
    selection = selection_of(viewer, query)
    shard = viewer.kept.shard(path)
    offset = query.number("offset", below=shard.entry.tokens)
    row = int(shard.offsets.searchsorted(offset, side="right")) - 1
    values = {**selected(selection), "n": row, "token": offset - int(shard.offsets[row])}
    return Redirect(to=address("document", values, part="token"))
