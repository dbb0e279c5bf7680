"""The first page: the manifest in tables, and the languages in each source's first shard."""

from collections import Counter

from shards.manifest import sum_shards
from shards.summary import source_splits
from shards.view.html import Page
from shards.view.query import Query
from shards.view.viewer import Viewer

_MAX_GENERATIONS = 50
_MAX_LANGUAGES = 12
_SAMPLE_ROWS = 1_000_000


def overview(viewer: Viewer, _query: Query) -> Page:
    """Return the overview page."""
    manifest = viewer.dataset.manifest
    generations = [(each, sum_shards(each.shards())) for each in manifest.generations]
    return viewer.page(
        "overview",
        manifest=manifest,
        sources=[
            (name, split, sum_shards(manifest.shards(name, split=split)))
            for name, split in source_splits(manifest)
        ],
        fates=sorted(_fates(viewer).items(), key=_by_size),
        languages={name: _languages(viewer, name) for name in viewer.dataset.sources},
        most_languages=_MAX_LANGUAGES,
        generations=list(enumerate(generations, 1))[-_MAX_GENERATIONS:],
    )


def _fates(viewer: Viewer) -> Counter[tuple[str, str, str]]:
    """Return the number of records by source, verdict and reason."""
    fates: Counter[tuple[str, str, str]] = Counter()
    for generation in viewer.dataset.manifest.generations:
        for source, account in generation.accounting.items():
            fates[source, "kept", ""] += account.get("kept", 0)
            for verdict in ("dropped", "quarantined"):
                for reason, number in account.get(verdict, {}).items():
                    fates[source, verdict, reason] += number
    return fates


def _by_size(fate: tuple[tuple[str, str, str], int]) -> tuple[str, int]:
    (source, _, _), number = fate
    return source, -number


def reasons(viewer: Viewer) -> set[str]:
    """Return all reasons in the accounting."""
    return {reason for _, _, reason in _fates(viewer)} - {""}


def _languages(viewer: Viewer, source: str) -> Counter[str]:
    """Return the numbers of documents by language in the first shard of a source."""
    locations = viewer.shards.selection(source=source).locations
    shards = (viewer.shards.shard(each.entry.path) for each in locations if each.entry.documents)
    shard = next(shards, None)
    counts = {} if shard is None else shard.value_counts("language", limit=_SAMPLE_ROWS)
    return Counter({language or "?": number for language, number in counts.items()})
