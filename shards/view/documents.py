"""Pages about documents: lists in order or of search results, and single documents by token."""

import codecs
import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from shards.manifest import TRAIN
from shards.reader import Shard
from shards.sampling.trace import ORIGIN
from shards.view.audit import AUDIT, AuditRecord
from shards.view.html import Page, Redirect, address
from shards.view.query import BadQuery, Query
from shards.view.search import MATCHES, SPLITS, DocumentSet, FoundDocument, SearchQuery
from shards.view.viewer import Viewer
from shards.vocabulary import Vocabulary

PER_PAGE = 20
_SNIPPET_TOKENS = 80
_BEFORE = 20
"""The number of tokens that a snippet shows before the found words."""

_SHOWN = ("language", "path", "position", "id", "url")
_SHOWN_REMOVED = ("path", "position")
"""Columns that are shown for a removed document."""

PART_TOKENS = 2048
"""The maximum number of tokens of a document that one page shows."""

_MAX_JOINED = 8
"""The maximum number of tokens that make up one character."""

_ORIGIN = ("path", "position", "ordinal")
"""Columns that a document and its record share, besides the order."""


def documents(viewer: Viewer, query: Query) -> Page:
    """Return a page of documents."""
    selection = selection_of(viewer, query)
    columns = viewer.shards.text_columns(selection)
    wanted = _wanted(query, columns)
    start = query.number("at", below=max(selection.total, 1))
    found = viewer.shards.search(
        selection, wanted, start=start, limit=PER_PAGE, seconds=viewer.seconds
    )
    match = wanted.match if wanted.column else ""
    return viewer.page(
        "documents",
        selection=selection,
        wanted=wanted,
        parameters={**selection.parameters, **vars(wanted), "match": match},
        all_sources=viewer.dataset.sources,
        splits=SPLITS,
        columns=columns,
        matches=MATCHES,
        items=[_item(viewer, place, wanted.words) for place in found.hits],
        found=found,
        before=max(start - PER_PAGE, 0) or None,
    )


def search(viewer: Viewer, query: Query) -> Redirect:
    """Redirect to the documents that the query names, or else to those that contain its words."""
    selection, text = selection_of(viewer, query), query.text("q").strip()
    by_name = viewer.shards.search(
        selection, SearchQuery(name=text), start=0, limit=1, seconds=viewer.seconds
    )
    key = "name" if text and by_name.hits else "words"
    others = {name: value for name, value in query.values.items() if name != "q"}
    return Redirect(to=address("documents", {**others, key: text}))


def selection_of(viewer: Viewer, query: Query) -> DocumentSet:
    """Return the documents that an address selects.

    Raises:
        BadQuery: There is no such source or shard.
    """
    if shard := query.text("shard").strip():
        return viewer.shards.selection(shard=shard)
    source = query.choice("source", viewer.dataset.sources)
    return viewer.shards.selection(source=source, split=query.choice("split", SPLITS, TRAIN))


def _wanted(query: Query, columns: list[str]) -> SearchQuery:
    column, value = query.choice("column", columns), query.text("value")
    if bool(column) != bool(value):
        raise BadQuery("Give both a column and its value, or neither.")
    return SearchQuery(
        name=query.text("name").strip(),
        language=query.text("language").strip(),
        column=column,
        value=value,
        match=query.choice("match", MATCHES, MATCHES[0]),
        words=query.text("words"),
    )


def _item(viewer: Viewer, place: FoundDocument, words: str) -> dict[str, Any]:
    """Return the values that a list shows for a document; some are None if it was removed."""
    shard = viewer.shards.shard(place.location.entry.path)
    is_removed = place.row in shard.removed
    names = _SHOWN_REMOVED if is_removed else _SHOWN
    columns = (name for name in names if name in shard.documents.column_names)
    return {
        "place": place,
        "tokens": int(shard.lengths[place.row]),
        "columns": {name: shard.value(name, place.row) for name in columns},
        "parts": None if is_removed else _marked(snippet(viewer, place), words),
    }


def snippet(viewer: Viewer, place: FoundDocument) -> str:
    """Return the beginning of a document, or the text around the found words."""
    shard = viewer.shards.shard(place.location.entry.path)
    if place.row in shard.removed:
        return ""
    vocabulary, tokens = viewer.dataset.vocabulary, shard[place.row]
    if len(tokens) and vocabulary.special[int(tokens[-1])]:
        tokens = tokens[:-1]  # the end of the document
    first = max(place.token - _BEFORE, 0)
    shown = tokens[first : first + _SNIPPET_TOKENS]
    text = vocabulary.decode_bytes(shown).decode(errors="ignore")
    more = " …" if first + len(shown) < len(tokens) else ""
    return f"{'… ' if first else ''}{text}{more}"


def _marked(text: str, words: str) -> list[str]:
    """Split a text into parts; every second part is an occurrence of the words to mark."""
    if not words:
        return [text]
    return re.split(f"({re.escape(words)})", text, flags=re.IGNORECASE | re.ASCII)


def random(viewer: Viewer, query: Query) -> Redirect:
    """Redirect to a random document, which depends only on a seed."""
    selection, seed = selection_of(viewer, query), query.number("seed")
    if not selection.total:
        raise BadQuery("There is no document to choose from.")
    digest = hashlib.blake2b(str(seed).encode(), digest_size=16).digest()
    number = int.from_bytes(digest, "little") % selection.total
    return Redirect(to=address("document", {**selection.parameters, "n": number, "seed": seed}))


def token(viewer: Viewer, query: Query) -> Redirect:
    """Redirect to the document that a token of a shard belongs to."""
    selection = selection_of(viewer, query)
    if not selection.shard:
        raise BadQuery("Give a shard, such as g0001-3f9c12ab/wudao/00000, and a token in it.")
    shard = viewer.shards.shard(selection.shard)
    offset = query.number("offset", below=shard.entry.tokens)
    row = int(shard.offsets.searchsorted(offset, side="right")) - 1
    values = {**selection.parameters, "n": row, "token": offset - int(shard.offsets[row])}
    return Redirect(to=address("document", values, part="token"))


class ShownTokens(NamedTuple):
    """Tokens whose bytes are whole characters."""

    first: int
    """The number of the first token in the document."""
    ids: list[int]
    text: str
    special: bool


def document(viewer: Viewer, query: Query) -> Page:
    """Return the page of a document of a selection."""
    selection = selection_of(viewer, query)
    number = query.number("n", below=selection.total)
    place = selection.place(number)
    shard = viewer.shards.shard(place.location.entry.path)
    is_removed = place.row in shard.removed
    columns = [each for each in shard.documents.column_names if not is_removed or each in ORIGIN]
    return viewer.page(
        "document",
        place=place,
        total=selection.total,
        parameters=selection.parameters,
        seed=query.number("seed") + 1 if query.text("seed") else 0,
        text=None if is_removed else _text(viewer.dataset.vocabulary, shard, place, query),
        shard=shard,
        origin=origin(shard, place.row),
        columns={name: shard.value(name, place.row) for name in columns},
        record=None if is_removed else _audited(viewer, shard, place),
        has_audit=bool(viewer.audit.tables[AUDIT]),
        has_slots=viewer.similarity.has_slots,
    )


def _text(
    vocabulary: Vocabulary, shard: Shard, place: FoundDocument, query: Query
) -> dict[str, Any]:
    """Return a part of the text, with the token that the address names if it names one."""
    tokens = shard[place.row]
    chosen = query.number("token", below=len(tokens)) if query.text("token") else None
    num_parts = -(-len(tokens) // PART_TOKENS)
    part = query.number("part", (chosen or 0) // PART_TOKENS, below=max(num_parts, 1))
    first = part * PART_TOKENS
    ids = tokens[first : first + PART_TOKENS].view(f"u{tokens.itemsize}").tolist()
    if ids and max(ids) >= len(vocabulary):
        raise shard.damage("bin", f"the token {max(ids)} is outside the vocabulary")
    token = None if chosen is None else int(tokens[chosen])
    return {
        "shown_tokens": shown_tokens(vocabulary, ids, first=first),
        "part": part,
        "num_parts": num_parts,
        "part_tokens": PART_TOKENS,
        "num_tokens": len(tokens),
        "prompt": int(shard.prompts[place.row]),
        "chosen": chosen,
        "token": token,
        "content": b"" if token is None else vocabulary.decode_bytes([token]),
        "is_special": token is not None and bool(vocabulary.special[token]),
        "offset": int(shard.offsets[place.row]) + (chosen or 0),
    }


def shown_tokens(
    vocabulary: Vocabulary, ids: Sequence[int], *, first: int
) -> Iterator[ShownTokens]:
    """Yield tokens in groups that make up whole characters.

    Args:
        vocabulary: The vocabulary of the dataset.
        ids: The tokens.
        first: The number of the first token in its document.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    waiting: list[int] = []
    text = ""
    for number, token in enumerate(ids, first):
        special = bool(vocabulary.special[token])
        if waiting and (special or len(waiting) == _MAX_JOINED):
            yield ShownTokens(
                number - len(waiting), waiting, text + decoder.decode(b"", True), False
            )
            decoder.reset()
            waiting, text = [], ""
        content = vocabulary.decode_bytes([token])
        if special:
            yield ShownTokens(number, [token], content.decode(errors="replace"), True)
            continue
        waiting.append(token)
        text += decoder.decode(content)
        if not decoder.getstate()[0]:
            yield ShownTokens(number + 1 - len(waiting), waiting, text, False)
            waiting, text = [], ""
    if waiting:
        end = first + len(ids)
        yield ShownTokens(end - len(waiting), waiting, text + decoder.decode(b"", True), False)


def origin(shard: Shard, row: int) -> dict[str, Any]:
    """Return the columns that identify the record of a document, besides the order."""
    names = [name for name in _ORIGIN if name in shard.documents.column_names]
    return {name: shard.value(name, row) for name in names}


def _audited(viewer: Viewer, shard: Shard, place: FoundDocument) -> AuditRecord | None:
    """Return the audit row of a document, if there is one."""
    order, origin_ = int(shard.value("order", place.row)), origin(shard, place.row)
    records = viewer.audit.by_order(
        AUDIT,
        [order],
        generation=place.location.generation.name,
        source=place.location.source,
    )
    return next((each for each in records if origin_.items() <= each.values.items()), None)
