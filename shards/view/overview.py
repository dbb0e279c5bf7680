"""The first page: what the manifest says, and languages in the first shard of each source."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow.compute as pc

from shards.format import ARROW
from shards.manifest import sum_shards
from shards.storage.arrow import check_values, damage_told
from shards.summary import source_splits
from shards.view.query import Query
from shards.view.viewer import Viewer

_MOST_GENERATIONS = 50
_MOST_LANGUAGES = 12
_SAMPLE_ROWS = 1_000_000


def overview(viewer: Viewer, _query: Query) -> str:
    """Return the first page."""
    manifest = viewer.dataset.manifest
    generations = [(each, sum_shards(each.shards())) for each in manifest.generations]
    return viewer.page(
        "overview",
        manifest=manifest,
        sources=[
            (name, split, sum_shards(manifest.shards(name, split=split)))
            for name, split in source_splits(manifest)
        ],
        fates=sorted(_fates(viewer).items()),
        languages={name: _languages(viewer, name) for name in viewer.dataset.sources},
        most_languages=_MOST_LANGUAGES,
        generations=list(enumerate(generations, 1))[-_MOST_GENERATIONS:],
    )


def _fates(viewer: Viewer) -> Counter[tuple[str, str, str]]:
    """Return the number of records by source, verdict and reason."""
    fates: Counter[tuple[str, str, str]] = Counter()
    for generation in viewer.dataset.manifest.generations:
        for source, account in generation.accounting.items():
            for verdict, reason, number in _counted(account):
                fates[source, verdict, reason] += number
    return fates


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


def reasons(viewer: Viewer) -> set[str]:
    """Return all reasons that the accounting has."""
    return {reason for _, _, reason in _fates(viewer)} - {""}


def _languages(viewer: Viewer, source: str) -> Counter[str]:
    """Return the documents of the first shard of a source by language."""
    homes = viewer.shards.selection(source=source).homes
    shards = (viewer.shards.shard(each.entry.path) for each in homes if each.entry.documents)
    shard = next(shards, None)
    if shard is None or "language" not in shard.documents.column_names:
        return Counter()
    with damage_told(shard.file(ARROW)):
        column = check_values(shard.documents["language"].slice(0, _SAMPLE_ROWS), shard.file(ARROW))
        counted = pc.value_counts(column).to_pylist()
    return Counter({item["values"] or "?": item["counts"] for item in counted})
