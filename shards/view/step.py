"""The windows that a step of a training run reads, with the texts of their documents."""

from typing import Any

from shards.sampling.trace import TracedDocument, TracedSample, Tracer
from shards.view.html import Page
from shards.view.query import BadQuery, Query
from shards.view.viewer import Viewer

_MAX_SAMPLES = 64
_SNIPPET_TOKENS = 60
_MAX_STEPS = 10**9
"""The number of steps that is assumed for a run that has no end."""


def step(viewer: Viewer, query: Query) -> Page:
    """Return a page with some of the windows of a step."""
    tracer = viewer.tracer
    if tracer is None:
        raise BadQuery("There is no run: start the viewer with --run RUN to see its steps.")
    number, most = query.number("n"), tracer.plan.steps or _MAX_STEPS
    if number >= most:
        raise BadQuery(f"There is no step {number:,}: the run has {most:,}, counted from 0.")
    first = query.number("at")
    samples = list(tracer.samples(number))
    after = first + _MAX_SAMPLES
    return viewer.page(
        "step",
        number=number,
        most=most,
        samples=[_sample(viewer, tracer, sample) for sample in samples[first:after]],
        after=after if after < len(samples) else None,
    )


def _sample(viewer: Viewer, tracer: Tracer, sample: TracedSample) -> dict[str, Any]:
    entry = tracer.sampler.streams[sample.stream].shards[sample.shard]
    shard = tracer.shard(sample.stream, sample.shard)
    is_here = shard.directory.absolute() == viewer.dataset.directory.absolute()
    is_here = is_here and entry.path in viewer.shards.locations
    # The viewer's shard includes the removals made after the run.
    own = viewer.shards.shard(entry.path) if is_here else None
    spans = []
    for span in sample.spans:
        document = TracedDocument(stream=sample.stream, shard=sample.shard, row=span.row)
        first = int(shard.offsets[span.row])
        text = ""
        if own is not None and span.row not in own.removed:
            tokens = own[span.row][span.begin - first : span.end - first][:_SNIPPET_TOKENS]
            text = viewer.dataset.vocabulary.decode_bytes(tokens).decode(errors="ignore")
        spans.append((span, first, tracer.describe(document), text))
    return {"sample": sample, "path": entry.path, "is_here": is_here, "spans": spans}
