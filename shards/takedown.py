"""What is told of a removal: which documents, in which shards, and at which steps they were seen.

A run is given by its saved options; the answer holds for the steps before one that is named, by
default before the run's last, else within one epoch.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from shards.manifest import TRAIN
from shards.reader import Dataset
from shards.records import to_json
from shards.remove import Selection, ShardPart, listed
from shards.run import Run
from shards.storage.files import write_json
from shards.trace import ORIGIN, TracedDocument, Tracer

_NUM_SHOWN = 20
_LINE = "  {:<18} {:<20} {:<10} {:>9} {:>14} {:>7}"


@dataclass(frozen=True, kw_only=True)
class AskedDocument:
    """A document that was asked for."""

    shard: str
    """The path of its shard in the dataset, without suffix."""
    row: int
    generation: str
    source: str
    split: str
    tokens: int
    origin: Mapping[str, Any]
    """Those of path, position, id and url that its corpus has."""
    names: tuple[str, ...]
    """By which it was found."""
    removed_before: bool
    steps: tuple[int, ...] | None
    """That train on it, sorted; None without a run."""


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """A training run, and the steps that are looked at."""

    run: str
    """The file of its options."""
    until: int | None
    """The step to stop before; None: one epoch."""
    reads: bool
    """Whether it reads any of the dataset."""


@dataclass(frozen=True, kw_only=True)
class Takedown:
    """The answer to a request."""

    dataset: str
    manifest: int
    """Number of the manifest in which the documents were looked up."""
    reason: str
    time: str
    """When, UTC."""
    documents: tuple[AskedDocument, ...]
    missing: tuple[str, ...]
    exposure: Exposure | None
    removed_in: int | None = None
    """Number of the manifest that removes them; None if nothing was changed."""

    def save(self, path: Path) -> None:
        """Write all of it as JSON."""
        write_json(path, to_json(self))


def takedown(
    dataset: Dataset,
    selection: Selection,
    *,
    reason: str,
    run: tuple[Path, int | None] | None = None,
) -> Takedown:
    """Return what is known of selected documents.

    Args:
        dataset: the dataset.
        selection: its documents that were asked for.
        reason: why they are removed.
        run: the file of a run's options and the step to stop before, None for its last.

    Raises:
        UserError: there is no such run, or its data do not exist.
    """
    steps = None if run is None else _Steps(*run)
    return Takedown(
        dataset=str(dataset.directory),
        manifest=dataset.manifest.number,
        reason=reason,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        documents=tuple(
            document
            for part in selection.parts
            for document in _documents(part, selection.names, steps)
        ),
        missing=selection.missing,
        exposure=None if steps is None else steps.exposure(selection),
    )


class _Steps:
    """Answers at which steps of a run documents are seen."""

    def __init__(self, path: Path, until: int | None) -> None:
        run = Run.load(path)
        self._path, self._until = path, run.steps if until is None else until
        # Only a run that follows says from when on it left removed documents out.
        self._tracer = Tracer(run, removed=run.followed is None)
        self._streams = {stream.name: i for i, stream in enumerate(self._tracer.sampler.streams)}

    def _stream(self, part: ShardPart) -> int | None:
        """Return the index of the stream that has a shard; None if the run does not read it."""
        if part.split != TRAIN:
            return None
        return self._streams.get(f"{part.generation.fingerprint}/{part.source}")

    def exposure(self, selection: Selection) -> Exposure:
        reads = any(self._stream(part) is not None for part in selection.parts)
        return Exposure(run=str(self._path), until=self._until, reads=reads)

    def of(self, part: ShardPart) -> list[tuple[int, ...]]:
        """Return the steps that train on each document of a part."""
        if (stream := self._stream(part)) is None:
            return [()] * len(part.rows)
        documents = (
            TracedDocument(stream=stream, shard=part.number, row=row) for row in part.rows.tolist()
        )
        return [tuple(self._tracer.steps_of(one, until=self._until)) for one in documents]


def _documents(
    part: ShardPart, names: Sequence[str], steps: _Steps | None
) -> Iterator[AskedDocument]:
    rows = part.rows.tolist()
    seen: Sequence[tuple[int, ...] | None] = [None] * len(rows) if steps is None else steps.of(part)
    present = [name for name in ORIGIN if name in part.documents.column_names]
    origins, tokens = part.documents.select(present).to_pylist(), part.tokens.tolist()
    edges = np.searchsorted(part.hits.rows, [*rows, rows[-1] + 1])
    for i, row in enumerate(rows):
        yield AskedDocument(
            shard=part.entry.path,
            row=row,
            generation=part.generation.name,
            source=part.source,
            split=part.split,
            tokens=tokens[i],
            origin={name: value for name, value in origins[i].items() if value not in (None, "")},
            names=tuple(names[name] for name in part.hits.names[edges[i] : edges[i + 1]].tolist()),
            removed_before=bool(part.removed[i]),
            steps=seen[i],
        )


def takedown_lines(told: Takedown, *, dry_run: bool) -> Iterator[str]:
    """Yield what a person reads of it: sums by generation and source, shards, documents."""
    new = [document for document in told.documents if not document.removed_before]
    verb = "would be removed" if dry_run else "are removed"
    yield f"{told.dataset}: {_amount(new)} {verb}"
    yield _LINE.format("generation", "source", "split", "documents", "tokens", "shards")
    for (generation, source, split), documents in _groups(new):
        yield _LINE.format(
            generation,
            source,
            split,
            f"{len(documents):,}",
            f"{sum(document.tokens for document in documents):,}",
            f"{len({document.shard for document in documents}):,}",
        )
    if before := len(told.documents) - len(new):
        yield f"{_count(before, 'document')} had been removed before"
    if told.missing:
        yield f"{_count(len(told.missing), 'name')} without a document: {listed(told.missing)}"
    yield "documents by shard and row"
    yield from _shown(told)
    if told.exposure is not None:
        yield from _exposure_lines(told.exposure, told.documents)


def _groups(
    documents: Sequence[AskedDocument],
) -> list[tuple[tuple[str, str, str], list[AskedDocument]]]:
    """Return documents by generation, source and split, in the order given."""
    groups: dict[tuple[str, str, str], list[AskedDocument]] = {}
    for document in documents:
        key = (document.generation, document.source, document.split)
        groups.setdefault(key, []).append(document)
    return list(groups.items())


def _shown(told: Takedown) -> Iterator[str]:
    """Yield a line for each of the first documents."""
    for document in told.documents[:_NUM_SHOWN]:
        origin = [f"{name}={value}" for name, value in document.origin.items()]
        state = ["(removed before)"] if document.removed_before else []
        yield "  " + " ".join([f"{document.shard}:{document.row}", *origin, *state])
        if told.exposure is not None:
            yield f"    {_steps_text(document)}"
    if (more := len(told.documents) - _NUM_SHOWN) > 0:
        yield f"  and {more:,} more: --report FILE has them all"


def _steps_text(document: AskedDocument) -> str:
    steps = document.steps or ()
    if document.split != TRAIN:
        return "held out for validation: no step trains on it"
    if not steps:
        return "no step trains on it"
    first = ", ".join(map(str, steps[:_NUM_SHOWN]))
    more = f" and {len(steps) - _NUM_SHOWN:,} more" if len(steps) > _NUM_SHOWN else ""
    return f"{'step' if len(steps) == 1 else 'steps'} {first}{more}"


def _exposure_lines(exposure: Exposure, documents: Sequence[AskedDocument]) -> Iterator[str]:
    span = "one epoch" if exposure.until is None else f"the steps before {exposure.until:,}"
    seen = [document.steps for document in documents if document.steps]
    steps = {step for some in seen for step in some}
    extent = f" from {min(steps):,} to {max(steps):,}" if steps else ""
    yield (
        f"run {exposure.run}, {span}: {len(seen):,} of {_count(len(documents), 'document')} "
        f"trained on, at {_count(len(steps), 'step')}{extent}"
    )
    if not exposure.reads:
        yield "  the run reads none of these shards: is it a run on this dataset?"


def _amount(documents: Sequence[AskedDocument]) -> str:
    tokens = sum(document.tokens for document in documents)
    shards = len({document.shard for document in documents})
    parts = _count(len(documents), "document"), _count(tokens, "token"), _count(shards, "shard")
    return f"{parts[0]} of {parts[1]} in {parts[2]}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
