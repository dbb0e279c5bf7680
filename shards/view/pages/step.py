"""What a step of a training run reads: its windows, and the documents in them."""

from shards.trace import TracedDocument, TracedSample, Tracer
from shards.view.address import BadQuery, Query
from shards.view.markup import Child, Markup, address, joined, link, tag
from shards.view.pages.page import Page, entry, field, form, heading, steps
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
    samples = list(tracer.samples(number))
    shown = samples[first : first + _MOST_SAMPLES]
    body = joined(
        heading("Step", f" {number:,}"),
        form("step", field("step", entry("n", str(number), kind="number"))),
        steps(
            {
                "previous": address("step", {"n": str(number - 1)}) if number else None,
                "next": address("step", {"n": str(number + 1)}) if number + 1 < most else None,
            }
        ),
        [_sample(viewer, tracer, sample) for sample in shown],
        _more(number, first, len(samples)),
    )
    return Page(title=f"Step {number:,}", body=body)


def _more(number: int, first: int, total: int) -> Markup | None:
    after = first + _MOST_SAMPLES
    if after >= total:
        return None
    return steps({"go on": address("step", {"n": str(number), "at": after})})


def _sample(viewer: Viewer, tracer: Tracer, sample: TracedSample) -> Markup:
    entry_ = tracer.sampler.streams[sample.stream].shards[sample.shard]
    head = (
        f"position {sample.position:,} · epoch {sample.epoch} · scatter {sample.scatter} · "
        f"window {sample.window:,} of {entry_.path}"
    )
    pieces: list[Child] = []
    for piece in sample.pieces:
        traced = TracedDocument(stream=sample.stream, shard=sample.shard, row=piece.row)
        shard = tracer.shard(sample.stream, sample.shard)
        first = int(shard.offsets[piece.row])
        extent = f"tokens {piece.begin - first:,}-{piece.end - first:,}"
        here = entry_.path in viewer.homes
        here = here and shard.directory.absolute() == viewer.dataset.directory.absolute()
        values = {"shard": entry_.path, "n": str(piece.row), "token": str(piece.begin - first)}
        shown: Child = link(address("document", values, part="token"), extent) if here else extent
        pieces.append(tag("li", shown, " ", tracer.describe(traced)))
    return tag("article", tag("p", head, class_="about"), tag("ul", pieces))
