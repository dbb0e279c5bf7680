from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shards.sampling.mixture import Blend
from shards.sampling.plan import BatchSize, SamplingPlan
from shards.sampling.trace import TracedDocument, Tracer
from shards.sampling.windows import WindowVocabulary
from tests.shards.windows import read_window


def run_on(directory: Path, **values: object) -> SamplingPlan:
    blend = Blend(start=0, data=(f"{directory}:news=3", f"{directory}:books=1"))
    batches = (BatchSize(step=0, size=8), BatchSize(step=20, size=4))
    run = SamplingPlan(mixes=(blend,), batches=batches, scatters=2, length=512, seed=7)
    return replace(run, **values)


def documents(tracer: Tracer) -> Iterator[TracedDocument]:
    for i, stream in enumerate(tracer.sampler.streams):
        for j, shard in enumerate(stream.shards):
            for row in range(shard.documents):
                yield TracedDocument(stream=i, shard=j, row=row)


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"scatters": 4, "seed": 1},
        {"scatters": 1, "objective": "causal", "length": 200},
        {"slack": 250, "length": 512},
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
            for row in {span.row for span in sample.spans}:
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
        for until in range(0, steps, 14):
            steps_seen = [step for step, _, _ in seen if step < until]
            found = tracer.samples_of(document, until=until)
            assert [sample.step for sample in found] == steps_seen
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
            spec=tracer.plan.window,
            vocabulary=WindowVocabulary.of(tracer.sampler.streams[sample.stream].dataset),
            phase=tracer.sampler.phase_of(sample.stream, shard=sample.shard, epoch=sample.epoch),
        )
        text = [shard.tokens[span.begin : span.end] for span in sample.spans]
        assert np.array_equal(np.concatenate(text), window.tokens)
        assert [span.row for span in sample.spans] == window.span_rows.tolist()
