"""What a step of a training run reads: its windows, and the documents in them."""

from typing import Any

from shards.trace import TracedDocument, TracedSample, Tracer
from shards.view.html import Page, address
from shards.view.query import BadQuery, Query
from shards.view.viewer import Viewer

_MOST_SAMPLES = 64
_MOST_STEPS = 10**9
"""Of a run without an end."""


def step(viewer: Viewer, query: Query) -> Page:
    """Return the windows of a step, some at a time."""
    tracer = viewer.tracer
    if tracer is None:
        raise BadQuery("No run was given: start the viewer with --run RUN to look at its steps.")
    number = query.number("n")
    most = tracer.run.steps or _MOST_STEPS
    if number >= most:
        raise BadQuery(f"There is no step {number:,}: the run has {most:,} steps, from 0 on.")
    first = query.number("at")
    after = first + _MOST_SAMPLES
    samples = list(tracer.samples(number))
    around = {
        "previous": address("step", {"n": number - 1}) if number else None,
        "next": address("step", {"n": number + 1}) if number + 1 < most else None,
    }
    values = {
        "number": number,
        "around": around,
        "samples": [_sample(viewer, tracer, sample) for sample in samples[first:after]],
        "more": address("step", {"n": number, "at": after}) if after < len(samples) else None,
    }
    return Page(template="step", title=f"Step {number:,}", values=values)


def _sample(viewer: Viewer, tracer: Tracer, sample: TracedSample) -> dict[str, Any]:
    entry = tracer.sampler.streams[sample.stream].shards[sample.shard]
    shard = tracer.shard(sample.stream, sample.shard)
    here = entry.path in viewer.homes
    here = here and shard.directory.absolute() == viewer.dataset.directory.absolute()
    pieces = []
    for piece in sample.pieces:
        traced = TracedDocument(stream=sample.stream, shard=sample.shard, row=piece.row)
        first = int(shard.offsets[piece.row])
        place = {"shard": entry.path, "n": piece.row, "token": piece.begin - first}
        pieces.append(
            {
                "to": address("document", place, part="token") if here else None,
                "extent": f"tokens {piece.begin - first:,}-{piece.end - first:,}",
                "document": tracer.describe(traced),
            }
        )
    about = (
        f"position {sample.position:,} · epoch {sample.epoch} · scatter {sample.scatter} · "
        f"window {sample.window:,} of {entry.path}"
    )
    return {"about": about, "pieces": pieces}
