"""The first page: what the manifest says, and languages in the first shard of each source."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow.compute as pc

from shards.format import ARROW
from shards.manifest import TRAIN, VALIDATION, sum_shards
from shards.storage.arrow import check_values, damage_told
from shards.summary import source_splits
from shards.view.address import Query
from shards.view.markup import Child, Markup, address, joined, link, tag
from shards.view.pages.page import Page, count_bytes, heading, pairs, section, table
from shards.view.viewer import Viewer

_MOST_GENERATIONS = 50
_MOST_LANGUAGES = 12
_SAMPLE_ROWS = 1_000_000


def overview(viewer: Viewer, _query: Query) -> Page:
    """Return the first page."""
    manifest = viewer.dataset.manifest
    body = joined(
        heading("Overview"),
        _tiles(viewer),
        section("Sources", _sources(viewer)),
        section("What became of the records", _fates(viewer)),
        section("Languages", _languages(viewer)),
        section("Generations", _generations(viewer)),
        section("Removed documents", _removals(viewer)) if manifest.removals else None,
        section("Tokenizer", _tokenizer(viewer)),
    )
    return Page(title="Overview", body=body)


def _tiles(viewer: Viewer) -> Markup:
    manifest = viewer.dataset.manifest
    train = sum_shards(manifest.shards(split=TRAIN))
    held = sum_shards(manifest.shards(split=VALIDATION))
    figures = {
        "documents": f"{train.documents + held.documents:,}",
        "tokens": f"{train.tokens + held.tokens:,}",
        "bytes": count_bytes(train.bytes + held.bytes),
        "manifest": f"{manifest.number:,}",
    }
    tiles = [
        tag("div", tag("b", figure), tag("span", name), class_="tile")
        for name, figure in figures.items()
    ]
    note = f"{manifest.corpus}, identity {manifest.identity[:16]}…"
    return joined(tag("div", tiles, class_="tiles"), tag("p", note, class_="note"))


def _sources(viewer: Viewer) -> Markup:
    rows: list[list[Child]] = []
    for name, split in source_splits(viewer.dataset.manifest):
        sums = sum_shards(viewer.dataset.manifest.shards(name, split=split))
        to = address("documents", {"source": name, "split": split})
        size = count_bytes(sums.bytes)
        figures = (f"{sums.documents:,}", f"{sums.tokens:,}", f"{sums.shards:,}", size)
        rows.append([link(to, name), split, *figures])
    head = ("source", "split", "documents", "tokens", "shards", "bytes")
    return table(head, rows, words=2)


def _fates(viewer: Viewer) -> Markup:
    sums: dict[tuple[str, str, str], int] = {}
    for generation in viewer.dataset.manifest.generations:
        for source, account in generation.accounting.items():
            for verdict, reason, number in _counted(account):
                key = (source, verdict, reason)
                sums[key] = sums.get(key, 0) + number
    read: dict[str, int] = {}
    for (source, _, _), number in sums.items():
        read[source] = read.get(source, 0) + number
    rows = []
    for (source, verdict, reason), number in sorted(sums.items()):
        values = {"source": source, "verdict": verdict, "reason": reason}
        share = f"{number / read[source]:.1%}" if read[source] else ""
        shown = link(address("records", values), reason or verdict)
        rows.append([source, verdict, shown, f"{number:,}", share])
    return table(("source", "verdict", "reason", "records", "share"), rows, words=3)


def _counted(account: Any) -> Iterator[tuple[str, str, int]]:
    """Yield verdict, reason and number of records; an account may have any shape."""
    if not isinstance(account, Mapping):
        return
    if isinstance(account.get("kept"), int):
        yield "kept", "", account["kept"]
    for verdict in ("dropped", "quarantined"):
        reasons = account.get(verdict)
        for reason, number in reasons.items() if isinstance(reasons, Mapping) else ():
            if isinstance(number, int):
                yield verdict, str(reason), number


def _languages(viewer: Viewer) -> Markup:
    rows: list[list[Child]] = []
    for source in viewer.dataset.sources:
        entries = [entry for entry in viewer.dataset.manifest.shards(source) if entry.documents]
        if not entries:
            continue
        counts = _language_counts(viewer, entries[0].path)
        total = sum(counts.values())
        for language, number in sorted(counts.items(), key=lambda item: -item[1])[:_MOST_LANGUAGES]:
            to = address("documents", {"source": source, "language": language})
            rows.append([source, link(to, language), f"{number:,}", f"{number / total:.1%}"])
    note = (
        "Counted in the first shard of each source. The order of documents is random, so a shard "
        "is a fair sample."
    )
    shown = table(("source", "language", "documents", "share"), rows, words=2)
    return joined(shown, tag("p", note, class_="note"))


def _language_counts(viewer: Viewer, path: str) -> dict[str, int]:
    shard = viewer.kept.shard(path)
    if "language" not in shard.documents.column_names:
        return {}
    with damage_told(shard.file(ARROW)):
        column = check_values(shard.documents["language"].slice(0, _SAMPLE_ROWS), shard.file(ARROW))
        counted = pc.value_counts(column).to_pylist()
    return {item["values"] or "?": item["counts"] for item in counted}


def _generations(viewer: Viewer) -> Markup:
    generations = viewer.dataset.manifest.generations
    rows = []
    for number, generation in list(enumerate(generations, 1))[-_MOST_GENERATIONS:]:
        sums = sum_shards(generation.shards())
        to = address("records", {"generation": generation.name})
        figures = (len(generation.inputs), sums.documents, sums.tokens, sums.shards)
        rows.append([link(to, generation.name), f"{number:,}", *(f"{each:,}" for each in figures)])
    head = ("generation", "number", "inputs", "documents", "tokens", "shards")
    hidden = len(generations) - len(rows)
    note = tag("p", f"The last {len(rows)}; {hidden:,} before.", class_="note") if hidden else None
    return joined(table(head, rows), note)


def _removals(viewer: Viewer) -> Markup:
    rows = [
        [removal.reason, f"{removal.number:,}", f"{removal.documents.rows:,}"]
        for removal in viewer.dataset.manifest.removals
    ]
    return table(("reason", "manifest", "documents"), rows)


def _tokenizer(viewer: Viewer) -> Markup:
    tokenizer = viewer.dataset.manifest.tokenizer
    special = ", ".join(f"{name} {token}" for name, token in sorted(tokenizer.special.items()))
    values = {
        "name": f"{tokenizer.name} ({tokenizer.spec})",
        "pieces": f"{tokenizer.pieces:,}, padded to {tokenizer.vocabulary_size:,}",
        "type": tokenizer.dtype,
        "special": special,
        "sha256": tokenizer.sha256,
    }
    return pairs(values)
