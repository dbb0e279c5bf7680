"""An estimate as the text that `--plan` prints, and the tables of text in it."""

import unicodedata
from collections.abc import Iterator, Sequence

from pipelines.corpus.options import Options
from pipelines.planning.estimate import Estimate
from pipelines.planning.sizes import Extent

_STEP = 1000
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def plan_lines(estimate: Estimate, options: Options) -> Iterator[str]:
    """Yield the lines of `--plan` for a run with some options."""
    extent = estimate.extent
    yield from _sources(extent)
    yield ""
    ranges = "; segments are cut by ranges first" if extent.rewritten_bytes else ""
    work = {
        "map": f"{extent.count('tasks'):,} tasks",
        "dedup": f"{extent.dedup_tasks:,} tasks",
        "merge": f"{extent.count('shards'):,} shards and {extent.count('held_shards'):,} of "
        f"validation{ranges}",
    }
    yield from table(
        [(name, duration_text(seconds), work[name]) for name, seconds in estimate.phases.items()],
        left=(0, 2),
    )
    size = {
        name: bytes_text(getattr(estimate, f"{name}_bytes"))
        for name in ("disk", "worker", "driver")
    }
    segments, shards = (bytes_text(extent.total(f"{name}_bytes")) for name in ("segment", "shard"))
    others = f"audit, rejects, signatures {bytes_text(extent.other_bytes)}"
    yield ""
    yield (
        f"wall time    {duration_text(estimate.seconds)} on {estimate.workers} workers "
        "like this one"
    )
    yield f"disk         segments {segments}, shards {shards}, {others}; at once {size['disk']}"
    yield f"memory       worker {size['worker']}, driver {size['driver']}"
    suggested = list(suggestions(estimate, options))
    yield from ["", *suggested] if suggested else []


def _sources(extent: Extent) -> Iterator[str]:
    head = ("", "files", "bytes", "sampled", "tasks", "segments", "documents", "kept", "tokens")
    rows = [
        (
            name,
            f"{source.files:,}",
            bytes_text(source.stored_bytes),
            f"{100 * source.share:.3g} %",
            f"{source.tasks:,}",
            f"{source.segments:,}",
            f"{source.records:,.0f}",
            f"{source.documents:,.0f}",
            f"{source.tokens:,.0f}",
        )
        for name, source in extent.sources.items()
    ]
    yield from table((head, *rows))
    yield "kept: before duplicates are looked for across the sample's pieces"


def suggestions(estimate: Estimate, options: Options) -> Iterator[str]:
    """Yield what in the estimate is worth changing, and how."""
    extent = estimate.extent
    if (tasks := extent.count("tasks")) < estimate.workers:
        yield (
            f"only {tasks} of {estimate.workers} workers have something to map: choose a "
            "smaller --split-bytes"
        )
    rejects = extent.total("rejects") / max(extent.total("records"), 1)
    if rejects > options.max_reject_rate:
        yield (
            f"{100 * rejects:.2g} % of the sample cannot be read: more than --max-reject-rate "
            f"{options.max_reject_rate:g} allows"
        )


def width(text: str) -> int:
    """Return how many columns a terminal gives a text: two for a character of East Asia."""
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def cut(text: str, room: int) -> str:
    """Return a text that takes at most `room` columns, with an ellipsis where it was cut."""
    if width(text) <= room:
        return text
    taken = 1
    for index, character in enumerate(text):
        taken += width(character)
        if taken > room:
            return f"{text[:index]}…"
    return text


def table(rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> Iterator[str]:
    """Yield rows with columns under each other; those not in `left` end at the same place."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = []
        for index, (cell, room) in enumerate(zip(row, widths, strict=True)):
            blanks = " " * (room - width(cell))
            cells.append(cell + blanks if index in left else blanks + cell)
        yield "  ".join(cells).rstrip()


def bytes_text(count: float) -> str:
    """Return a number of bytes for reading, as in 2.5 GB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < _STEP or unit == "TB":
            break
        count /= _STEP
    return f"{count:.3g} {unit}" if count < _STEP else f"{count:,.0f} {unit}"


def duration_text(seconds: float) -> str:
    """Return a duration for reading, as in 10 min."""
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:,.1f} h" if seconds < 2 * _DAY else f"{seconds / _DAY:,.1f} days"
