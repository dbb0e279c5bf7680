"""The documents of a training step, and the steps at which a document is seen.

The steps of a document are found by inverting the sampler, so no run is replayed. If a run switched
to newer manifests, a removal takes effect at the switch to the manifest that contains it.

    step ─▶ positions ─▶ draws ─▶ windows ─▶ spans of documents
    document ─▶ windows with a span of it, epoch by epoch ─▶ positions ─▶ steps
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from typing import Any

import numpy as np

from shards.errors import UserError
from shards.maintenance.names import DocumentQuery
from shards.manifest import VALIDATION
from shards.reader import Dataset, Documents, Shard
from shards.sampling.mixture import parse_blend
from shards.sampling.plan import SamplingPlan
from shards.sampling.streams import Stream, streams_of
from shards.sampling.switches import manifest_numbers, manifest_versions
from shards.sampling.windows import (
    DocumentSpan,
    WindowVocabulary,
    document_spans,
    num_windows,
    window_span,
)

ORIGIN = ("source", "path", "position", "id", "url")
"""The columns that describe the origin of a document; a corpus has some of these columns."""


@dataclass(frozen=True, kw_only=True)
class TracedDocument:
    """A document that a run may train on."""

    stream: int
    """The index of the stream in the sampler's streams."""
    shard: int
    """The index of the shard in the stream's shards."""
    row: int


@dataclass(frozen=True, kw_only=True)
class TracedSample:
    """A window at a position, with its content."""

    step: int
    position: int
    stream: int
    scatter: int
    epoch: int
    shard: int
    window: int
    """The number of the window in the shard."""
    spans: Sequence[DocumentSpan]
    """Runs of the shard's tokens by document, without removed documents."""


class Tracer:
    """Finds the documents of a training run's steps, and the steps of documents, from its plan."""

    def __init__(self, plan: SamplingPlan) -> None:
        self.plan = plan
        self.sampler = plan.sampler()
        versions = manifest_versions(plan)
        self._starts = [start for start, _ in versions]
        self._versions = [version for _, version in versions]
        self._numbers = [manifest_numbers(version) for version in self._versions]
        # Opened once for all versions, because each open dataset takes a file descriptor.
        self._newest = cache(Dataset.open)
        self._dataset = cache(self._as_read)
        self._documents = cache(self._read_documents)
        self._vocabulary = cache(WindowVocabulary.of)

    def shard(self, stream: int, number: int, *, position: int | None = None) -> Shard:
        """Return a shard of a stream with the removals at a position, or after the last switch."""
        version = len(self._starts) - 1 if position is None else self._version(position)
        return self._documents(version, stream).shard(number)

    def _read_documents(self, version: int, stream: int) -> Documents:
        """Return the documents of a stream with the removals of a manifest version."""
        owner = self.sampler.streams[stream]
        opened = self._dataset(owner.dataset, _number_in(self._versions[version], owner))
        return Documents(opened, owner.shards)

    def _as_read(self, dataset: Dataset, number: int) -> Dataset:
        """Return a dataset as of a manifest number."""
        if number == dataset.manifest.number:
            return dataset
        return self._newest(dataset.directory).as_of(number)

    def _version(self, position: int) -> int:
        return bisect_right(self._starts, position) - 1

    def manifest_number(self, sample: TracedSample) -> int | None:
        """Return the number of the manifest that a sample was read with; None for the newest."""
        directory = self.sampler.streams[sample.stream].dataset.directory
        return self._numbers[self._version(sample.position)].get(str(directory))

    def samples(self, step: int) -> Iterator[TracedSample]:
        """Yield the samples of a step's batch, by position."""
        first = self.plan.position_of(step)
        yield from self._samples_at(range(first, first + self.plan.batch_size(step)))

    def _samples_at(self, positions: Sequence[int]) -> Iterator[TracedSample]:
        if not positions:
            return
        drawn = self.sampler.draw(np.array(positions, np.int64))
        rows = zip(*(column.tolist() for column in drawn), strict=True)
        for position, (stream, scatter, epoch, shard, window, phase, _) in zip(
            positions, rows, strict=True
        ):
            yield TracedSample(
                step=self.plan.step_of(position),
                position=position,
                stream=stream,
                scatter=scatter,
                epoch=epoch,
                shard=shard,
                window=window,
                spans=self._spans(
                    stream, self.shard(stream, shard, position=position), window=window, phase=phase
                ),
            )

    def _spans(
        self, stream: int, shard: Shard, *, window: int, phase: int
    ) -> Sequence[DocumentSpan]:
        vocabulary = self._vocabulary(self.sampler.streams[stream].dataset)
        begin, end = window_span(
            shard, window, spec=self.sampler.window, vocabulary=vocabulary, phase=phase
        )
        return document_spans(shard, begin, end)

    def samples_of(self, document: TracedDocument, *, until: int | None) -> list[TracedSample]:
        """Return the samples with a span of a document, by position, except while it is removed.

        Args:
            document: a document that `find` returned.
            until: the step to stop before; None stops after the first epoch of the stream.
        """
        stream, shard = document.stream, document.shard
        positions = [
            position
            for position in self._all_positions(document, until=until)
            if document.row not in self.shard(stream, shard, position=position).removed
        ]
        return list(self._samples_at(positions))

    def _all_positions(self, document: TracedDocument, *, until: int | None) -> list[int]:
        """Return the positions of a document's windows, ignoring removals."""
        if until is None:
            return self._positions(document, epoch=0)
        end = self.plan.position_of(until)
        positions: list[int] = []
        late_epochs = 0
        for epoch in count():
            in_epoch = self._positions(document, epoch=epoch)
            positions += (position for position in in_epoch if position < end)
            # In a common stream, adjacent epochs may overlap by some positions: look at one more
            # epoch after the first that is too late.
            late_epochs = 0 if in_epoch and in_epoch[0] < end else late_epochs + 1
            if late_epochs == 2:  # noqa: PLR2004
                break
        return sorted(positions)

    def _positions(self, document: TracedDocument, *, epoch: int) -> list[int]:
        """Return the sorted positions of a document's windows that are drawn in an epoch."""
        stream, shard = document.stream, document.shard
        positions = (
            self.sampler.position_of(stream, shard=shard, window=window, epoch=epoch)
            for window in self._windows(document, epoch=epoch)
        )
        return sorted(position for position in positions if position is not None)

    def _windows(self, document: TracedDocument, *, epoch: int) -> list[int]:
        """Return the windows with a span of a document in an epoch, ignoring removals."""
        stream = document.stream
        shard, spec = self.shard(stream, document.shard), self.sampler.window
        shard = replace(shard, removed=shard.removed[:0])
        tokens = shard.entry.tokens
        phase = self.sampler.phase_of(stream, shard=document.shard, epoch=epoch)
        first = (int(shard.offsets[document.row]) - phase) % tokens
        last = first + len(shard[document.row]) - 1
        # A cut may be up to `slack` past its nominal position, and the last window is shorter.
        numbers = range((first - spec.slack) // spec.stride, last // spec.stride + 2)
        candidates = {number % num_windows(tokens, spec.stride) for number in numbers}
        return [
            window
            for window in sorted(candidates)
            if any(
                span.row == document.row
                for span in self._spans(stream, shard, window=window, phase=phase)
            )
        ]

    def find(self, text: str) -> list[TracedDocument]:
        """Return the documents that have a name, in all streams of the run.

        Args:
            text: SHARD:ROW as `describe` writes it, PATH:POSITION of the input, an id or a URL.

        Raises:
            UserError: no document has the name.
        """
        streams, names = self.sampler.streams, DocumentQuery([text])
        documents = [
            document
            for i, stream in enumerate(streams)
            for document in _find_in_stream(stream, i, names)
        ]
        if documents:
            return documents
        datasets = {stream.dataset.directory: stream.dataset for stream in streams}.values()
        held_out = (
            stream for dataset in datasets for stream in streams_of(dataset, split=VALIDATION)
        )
        if any(_find_in_stream(stream, 0, names) for stream in held_out):
            raise UserError(f"{text} is held out for validation: no step trains on it.")
        raise UserError(
            f"there is no document {text} in the data of this run: give SHARD:ROW, the input's "
            "PATH:POSITION, an id or a URL. The audit tables list dropped documents with their "
            "reasons."
        )

    def describe(self, document: TracedDocument) -> str:
        """Return SHARD:ROW of a document and its origin."""
        shard = self.shard(document.stream, document.shard)
        names = [name for name in ORIGIN if name in shard.documents.column_names]
        origin = {name: shard.value(name, document.row) for name in names}
        return describe_document(shard.entry.path, document.row, origin)


def describe_document(shard: str, row: int, origin: Mapping[str, Any]) -> str:
    """Return SHARD:ROW of a document and the known values of its origin."""
    known = [f"{name}={value}" for name, value in origin.items() if value not in (None, "")]
    return " ".join([f"{shard}:{row}", *known])


def _number_in(plan: SamplingPlan, stream: Stream) -> int:
    """Return the manifest number with which a plan last reads a stream."""
    numbers = (
        data.number
        for blend in reversed(plan.mixes)
        for data in parse_blend(blend)
        if data.includes(stream)
    )
    number = next(numbers, None)
    return stream.dataset.manifest.number if number is None else number


def _find_in_stream(stream: Stream, index: int, names: DocumentQuery) -> list[TracedDocument]:
    return [
        TracedDocument(stream=index, shard=i, row=row)
        for i, hits in enumerate(names.find(stream.dataset, stream.shards))
        for row in hits.rows.tolist()
    ]


def step_lines(tracer: Tracer, step: int) -> Iterator[str]:
    """Yield the lines that show what a step trains on: each window and its documents."""
    for sample in tracer.samples(step):
        shard = tracer.sampler.streams[sample.stream].shards[sample.shard]
        yield (
            f"position {sample.position}  epoch {sample.epoch}  scatter {sample.scatter}  "
            f"window {sample.window} of {shard.path}{_number(tracer, sample)}"
        )
        for span in sample.spans:
            document = TracedDocument(stream=sample.stream, shard=sample.shard, row=span.row)
            yield f"  {_extent(tracer, document, span)}  {tracer.describe(document)}"


def document_lines(tracer: Tracer, text: str, *, until: int | None) -> Iterator[str]:
    """Yield the lines that show at which steps a document is seen.

    Raises:
        UserError: there is no such document.
    """
    for document in tracer.find(text):
        yield tracer.describe(document)
        shard = tracer.shard(document.stream, document.shard)
        if document.row in shard.removed:
            yield "  removed: training skips this document"
        for sample in tracer.samples_of(document, until=until):
            for span in sample.spans:
                if span.row == document.row:
                    yield (
                        f"  step {sample.step}  position {sample.position}  epoch {sample.epoch}  "
                        f"{_extent(tracer, document, span)}{_number(tracer, sample)}"
                    )


def _number(tracer: Tracer, sample: TracedSample) -> str:
    """Return the end of a line, which names the manifest that a sample was read from."""
    number = tracer.manifest_number(sample)
    return "" if number is None else f"  manifest {number}"


def _extent(tracer: Tracer, document: TracedDocument, span: DocumentSpan) -> str:
    shard = tracer.shard(document.stream, document.shard)
    first, size = int(shard.offsets[document.row]), len(shard[document.row])
    return f"tokens {span.begin - first}-{span.end - first} of {size}"
