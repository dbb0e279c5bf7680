from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from shards.manifest import (
    ShardEntry,
    SourceEntry,
    read_manifest,
    write_manifest,
)
from shards.mixture import Mix
from shards.run import BatchSize, Run
from shards.trace import TracedDocument, Tracer
from shards.windows import WindowVocabulary
from tests.shards.conftest import EOS, GENERATION
from tests.shards.datasets import put_shard
from tests.shards.windows import read_window

NUM_BOOKS, NUM_SHARDS = 12, 4


def put_documents(directory: Path, path: str, lengths: list[int], *, name: str) -> ShardEntry:
    """Write a shard of documents of these lengths, each with an id, a URL and a position."""
    rows = range(len(lengths))
    return put_shard(
        directory,
        path,
        [[65 + row % 26] * (length - 1) + [EOS] for row, length in enumerate(lengths)],
        path=pa.array([f"{name}.json"] * len(lengths)).dictionary_encode(),
        position=pa.array([row * 100 for row in rows], pa.int64()),
        id=pa.array([f"{name}-{row}" for row in rows]),
        url=pa.array([None if row % 2 else f"https://{name}/{row}" for row in rows]),
    )


def lengths_of(shard: int) -> list[int]:
    """Some documents are shorter than a window, some longer than several."""
    return np.random.default_rng(shard).integers(1, 400, NUM_BOOKS).tolist()


@pytest.fixture(scope="module")
def library(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Books in four shards, notes in one (common to all scatters), a validation shard."""
    directory = tmp_path_factory.mktemp("library")
    books = [
        put_documents(directory, f"{GENERATION}/books/{i:05d}", lengths_of(i), name=f"book-{i}")
        for i in range(NUM_SHARDS)
    ]
    notes = put_documents(directory, f"{GENERATION}/notes/00000", [30, 700, 5, 1], name="notes")
    held = put_documents(directory, f"{GENERATION}/books/validation-00000", [20], name="held")
    manifest = read_manifest(pristine)
    (generation,) = manifest.generations
    sources = {
        "books": SourceEntry(shards=tuple(books), validation=(held,)),
        "notes": SourceEntry(shards=(notes,), validation=()),
    }
    vocabulary = manifest.vocabulary.path
    (directory / vocabulary).write_bytes((pristine / vocabulary).read_bytes())
    write_manifest(
        directory, replace(manifest, generations=(replace(generation, sources=sources),))
    )
    return directory


def run_on(directory: Path, **values: object) -> Run:
    mix = Mix(start=0, data=(f"{directory}:books=3", f"{directory}:notes=1"))
    batches = (BatchSize(step=0, size=8), BatchSize(step=20, size=4))
    run = Run(mixes=(mix,), batches=batches, scatters=2, length=128, seed=7)
    return replace(run, **values)


def documents(tracer: Tracer) -> Iterator[TracedDocument]:
    for i, stream in enumerate(tracer.sampler.streams):
        for j, shard in enumerate(stream.shards):
            for row in range(shard.documents):
                yield TracedDocument(stream=i, shard=j, row=row)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"scatters": 4, "seed": 1},
        {"scatters": 1, "objective": "causal", "length": 50},
        {"slack": 60, "length": 128},
    ],
)
def test_both_directions_agree_over_several_epochs(
    library: Path, values: dict[str, object]
) -> None:
    tracer, steps = Tracer(run_on(library, **values)), 60
    forward = defaultdict(list)
    for step in range(steps):
        for sample in tracer.samples(step):
            assert sample.step == step
            for row in {piece.row for piece in sample.pieces}:
                key = TracedDocument(stream=sample.stream, shard=sample.shard, row=row)
                forward[key].append((step, sample.position, sample.epoch))
    backward = {
        document: [
            (sample.step, sample.position, sample.epoch)
            for sample in tracer.samples_of(document, until=steps)
        ]
        for document in documents(tracer)
    }
    assert backward == {document: forward[document] for document in documents(tracer)}
    for document, seen in forward.items():
        for until in range(0, steps, 7):
            steps_seen = list(dict.fromkeys(step for step, _, _ in seen if step < until))
            assert tracer.steps_of(document, until=until) == steps_seen
    assert {epoch for seen in forward.values() for _, _, epoch in seen} >= {0, 1, 2}


def test_samples_are_what_is_read(library: Path) -> None:
    tracer = Tracer(run_on(library, objective="causal"))
    samples = [sample for step in (0, 19, 20, 333) for sample in tracer.samples(step)]
    assert {sample.epoch for sample in samples} > {0, 1}
    for sample in samples:
        shard = tracer.shard(sample.stream, sample.shard)
        window = read_window(
            shard,
            sample.window,
            spec=tracer.run.window,
            vocabulary=WindowVocabulary.of(tracer.sampler.streams[sample.stream].dataset),
            phase=tracer.sampler.phase_of(sample.stream, shard=sample.shard, epoch=sample.epoch),
        )
        text = [shard.tokens[piece.begin : piece.end] for piece in sample.pieces]
        assert np.array_equal(np.concatenate(text), window.tokens)
        assert [piece.row for piece in sample.pieces] == window.piece_rows.tolist()
