"""The first page: what the manifest says, and languages in the first shard of each source."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow.compute as pc

from shards.format import ARROW
from shards.manifest import TRAIN, VALIDATION, sum_shards
from shards.storage.arrow import check_values, damage_told
from shards.summary import source_splits
from shards.view.html import Page, address, byte_size
from shards.view.query import Query
from shards.view.viewer import Viewer

_MOST_GENERATIONS = 50
_MOST_LANGUAGES = 12
_SAMPLE_ROWS = 1_000_000

_Row = list[object]
"""The cells of a row; a link has a label and where it leads to."""


def overview(viewer: Viewer, _query: Query) -> Page:
    """Return the first page."""
    manifest = viewer.dataset.manifest
    generations = list(_generations(viewer))
    tokenizer = manifest.tokenizer
    special = ", ".join(f"{name} {token}" for name, token in sorted(tokenizer.special.items()))
    values = {
        "manifest": manifest,
        "tiles": _tiles(viewer),
        "sources": list(_sources(viewer)),
        "fates": list(_fates(viewer)),
        "languages": list(_languages(viewer)),
        "generations": generations[-_MOST_GENERATIONS:],
        "before": len(generations[:-_MOST_GENERATIONS]),
        "removals": [
            [removal.reason, f"{removal.number:,}", f"{removal.documents.rows:,}"]
            for removal in manifest.removals
        ],
        "tokenizer": {
            "name": f"{tokenizer.name} ({tokenizer.spec})",
            "pieces": f"{tokenizer.pieces:,}, padded to {tokenizer.vocabulary_size:,}",
            "type": tokenizer.dtype,
            "special": special,
            "sha256": tokenizer.sha256,
        },
    }
    return Page(template="overview", title="Overview", values=values)


def _link(to: str, label: str) -> dict[str, str]:
    return {"to": to, "label": label}


def _tiles(viewer: Viewer) -> dict[str, str]:
    manifest = viewer.dataset.manifest
    train = sum_shards(manifest.shards(split=TRAIN))
    held = sum_shards(manifest.shards(split=VALIDATION))
    return {
        "documents": f"{train.documents + held.documents:,}",
        "tokens": f"{train.tokens + held.tokens:,}",
        "bytes": byte_size(train.bytes + held.bytes),
        "manifest": f"{manifest.number:,}",
    }


def _sources(viewer: Viewer) -> Iterator[_Row]:
    for name, split in source_splits(viewer.dataset.manifest):
        sums = sum_shards(viewer.dataset.manifest.shards(name, split=split))
        to = address("documents", {"source": name, "split": split})
        figures = (f"{each:,}" for each in (sums.documents, sums.tokens, sums.shards))
        yield [_link(to, name), split, *figures, byte_size(sums.bytes)]


def _fates(viewer: Viewer) -> Iterator[_Row]:
    sums: Counter[tuple[str, str, str]] = Counter()
    read: Counter[str] = Counter()
    for generation in viewer.dataset.manifest.generations:
        for source, account in generation.accounting.items():
            for verdict, reason, number in _counted(account):
                sums[source, verdict, reason] += number
                read[source] += number
    for (source, verdict, reason), number in sorted(sums.items()):
        to = address("records", {"source": source, "verdict": verdict, "reason": reason})
        share = f"{number / read[source]:.1%}" if read[source] else ""
        yield [source, verdict, _link(to, reason or verdict), f"{number:,}", share]


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


def reasons(viewer: Viewer) -> list[str]:
    """Return all reasons that the accounting has."""
    accounts = (
        account
        for generation in viewer.dataset.manifest.generations
        for account in generation.accounting.values()
    )
    return sorted({reason for each in accounts for _, reason, _ in _counted(each)} - {""})


def _languages(viewer: Viewer) -> Iterator[_Row]:
    for source in viewer.dataset.sources:
        entries = [entry for entry in viewer.dataset.manifest.shards(source) if entry.documents]
        counts = _language_counts(viewer, entries[0].path) if entries else Counter()
        for language, number in counts.most_common(_MOST_LANGUAGES):
            to = address("documents", {"source": source, "language": language})
            share = f"{number / counts.total():.1%}"
            yield [source, _link(to, language), f"{number:,}", share]


def _language_counts(viewer: Viewer, path: str) -> Counter[str]:
    shard = viewer.shards.shard(path)
    if "language" not in shard.documents.column_names:
        return Counter()
    with damage_told(shard.file(ARROW)):
        column = check_values(shard.documents["language"].slice(0, _SAMPLE_ROWS), shard.file(ARROW))
        counted = pc.value_counts(column).to_pylist()
    return Counter({item["values"] or "?": item["counts"] for item in counted})


def _generations(viewer: Viewer) -> Iterator[_Row]:
    for number, generation in enumerate(viewer.dataset.manifest.generations, 1):
        sums = sum_shards(generation.shards())
        to = address("records", {"generation": generation.name})
        figures = (number, len(generation.inputs), sums.documents, sums.tokens, sums.shards)
        yield [_link(to, generation.name), *(f"{each:,}" for each in figures)]
