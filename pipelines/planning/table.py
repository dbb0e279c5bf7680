"""An estimate as the text that `--plan` prints, and the tables of text in it."""

import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from pipelines.corpus.options import Options
from pipelines.map.builder import MAX_RECORDS, MAX_TOKENS
from pipelines.merge.group import MOST_SLICES
from pipelines.planning.estimate import Estimate
from pipelines.planning.sizes import Extent, for_merge, passes, with_groups
from pipelines.planning.storage import Requests

_FULL = 0.4
"""Where segments are less full than this, larger splits are suggested."""
_STEP = 1000
_MINUTE, _HOUR, _DAY = 60, 3600, 86400

KINDS = ("put", "get", "head", "list", "delete")


def plan_lines(
    estimate: Estimate, options: Options, *, shares: Mapping[str, float]
) -> Iterator[str]:
    """Yield the lines of `--plan`.

    Args:
        estimate: The estimate.
        options: Options of the run.
        shares: The part of each source that was sampled.
    """
    extent = estimate.extent
    yield from _sources(extent, shares)
    yield from _phases(estimate, extent)
    yield ""
    wall_time, workers = duration_text(estimate.all_seconds), estimate.workers
    segments, shards, others, most = (
        bytes_text(getattr(extent, f"{name}_bytes"))
        for name in ("segment", "shard", "other", "most")
    )
    worker, driver = bytes_text(estimate.worker_bytes), bytes_text(estimate.driver_bytes)
    yield f"wall time    {wall_time} on {workers} workers like this one"
    yield (
        f"disk         segments {segments}, shards {shards}, audit, rejects, signatures {others}; "
        f"at once {most}"
    )
    yield f"memory       worker {worker}, driver {driver}"
    yield f"through Beam {bytes_text(estimate.beam_bytes)} of task records"
    if estimate.requests:
        yield from _requests(estimate.requests)
    suggested = list(suggestions(estimate, options))
    yield from ["", *suggested] if suggested else []


def _sources(extent: Extent, shares: Mapping[str, float]) -> Iterator[str]:
    head = ("", "files", "bytes", "sampled", "splits", "segments", "documents", "kept", "tokens")
    rows = [
        (
            name,
            f"{source.files:,}",
            bytes_text(source.stored_bytes),
            f"{100 * shares[name]:.3g} %",
            f"{source.splits:,}",
            f"{source.segments:,}",
            f"{source.records:,.0f}",
            f"{source.documents:,.0f}",
            f"{source.tokens:,.0f}",
        )
        for name, source in extent.sources.items()
    ]
    yield from table((head, *rows))
    yield "kept: before duplicates are looked for across the sample's pieces"


def _phases(estimate: Estimate, extent: Extent) -> Iterator[str]:
    later = with_groups(extent)
    tasks = {"map": f"{extent.splits:,} splits"}
    if later is not extent:
        tasks["group"] = f"{later.segments:,} groups of segments"
    tasks |= {
        "dedup": f"{extent.dedup_tasks + extent.drop_ranges:,} tasks, {later.dedup_slices:,} slices"
    }
    if extent.slot_ranges:
        tasks["slots"] = f"{extent.slot_ranges:,} tasks, {later.slot_slices:,} slices"
    if later.cuts:
        steps = [
            step for name, cuts in later.cuts.items() for step in passes(later.sources[name], cuts)
        ]
        tasks["ranges"] = (
            f"{sum(step.tasks for step in steps):,} ranges of groups, "
            f"{sum(step.slices for step in steps):,} slices"
        )
    tasks["merge"] = (
        f"{sum(extent.shards.values()):,} shards and {sum(extent.validation.values()):,} "
        f"of validation, {for_merge(later).merge_slices:,} slices"
    )
    yield ""
    yield from table(
        [(phase, duration_text(estimate.seconds[phase]), work) for phase, work in tasks.items()],
        left=(0, 2),
    )


def _requests(requests: Mapping[str, Requests]) -> Iterator[str]:
    rows = [("requests", *(kind.upper() for kind in KINDS), "all", "fetched")]
    total = sum(requests.values(), Requests())
    for phase, asked in {**requests, "all": total}.items():
        counts = (*(getattr(asked, kind) for kind in KINDS), asked.all)
        rows.append((phase, *(f"{count:,.0f}" for count in counts), bytes_text(asked.bytes)))
    yield ""
    yield from table(rows)


def suggestions(estimate: Estimate, options: Options) -> Iterator[str]:
    """Yield what in the estimate is worth changing, and how."""
    extent = estimate.extent
    slices = extent.slices
    later = with_groups(extent)
    if later is not extent:
        yield (
            f"{slices:,} slices are too many or too short: segments are merged into "
            f"{later.segments:,} groups first, which reads and writes them once more"
        )
    for name, cuts in later.cuts.items():
        yield (
            f"{later.sources[name].segments:,} groups would be read by {extent.shards[name]:,} "
            f"shards of {name}: they are cut into {math.prod(cuts):,} ranges before merge, which "
            f"reads and writes them {len(cuts)} more time{'s' * (len(cuts) > 1)}"
        )
    full = max(extent.total("records") / MAX_RECORDS, extent.total("tokens") / MAX_TOKENS) / max(
        extent.segments, 1
    )
    if slices > MOST_SLICES // 10 and full < _FULL:
        times = round(2 * _FULL / max(full, 0.01))
        yield (
            f"segments are {100 * full:.0f} % full: --split-bytes "
            f"{options.split_bytes * times} makes {times} times fewer"
        )
    if extent.splits < estimate.workers:
        yield (
            f"only {extent.splits} of {estimate.workers} workers have a split to map: choose a "
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
