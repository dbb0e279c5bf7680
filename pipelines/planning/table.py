"""An estimate as text for the person who asked."""

from collections.abc import Iterator, Mapping, Sequence

from pipelines.corpus.options import Options
from pipelines.map.builder import MAX_RECORDS, MAX_TOKENS
from pipelines.merge.group import MOST_SLICES
from pipelines.planning.estimate import Estimate
from pipelines.planning.requests import Requests
from pipelines.planning.sizes import Extent, grouped

_FULL = 0.4
"""Segments less full than this are worth fewer of them."""
_STEP = 1000
_MINUTE, _HOUR, _DAY = 60, 3600, 86400

KINDS = ("put", "get", "head", "list", "delete")


def lines(found: Estimate, options: Options, *, shares: Mapping[str, float]) -> Iterator[str]:
    """Yield the lines of `--plan`.

    Args:
        found: The estimate.
        options: Of the run.
        shares: How much of each source was sampled.
    """
    extent = found.extent
    yield from _sources(extent, shares)
    yield from _phases(found, extent)
    yield ""
    yield f"wall time    {clock(found.all_seconds)} on {found.workers} workers like this one"
    yield (
        f"disk         segments {size(extent.segment_bytes)}, shards {size(extent.shard_bytes)}, "
        f"audit, rejects, signatures {size(extent.other_bytes)}; at once "
        f"{size(extent.most_bytes)}"
    )
    yield f"memory       worker {size(found.worker_bytes)}, driver {size(found.driver_bytes)}"
    yield f"through Beam {size(found.beam_bytes)} of task records"
    if found.requests:
        yield from _requests(found.requests)
    notes = list(advice(found, options))
    yield from ["", *notes] if notes else []


def _sources(extent: Extent, shares: Mapping[str, float]) -> Iterator[str]:
    head = ("", "files", "bytes", "sampled", "splits", "segments", "documents", "kept", "tokens")
    rows = [
        (
            name,
            f"{each.files:,}",
            size(each.stored_bytes),
            f"{100 * shares[name]:.3g} %",
            f"{each.splits:,}",
            f"{each.segments:,}",
            f"{each.records:,.0f}",
            f"{each.documents:,.0f}",
            f"{each.tokens:,.0f}",
        )
        for name, each in extent.sources.items()
    ]
    yield from _table((head, *rows))
    yield "kept: before duplicates are looked for across the sample's pieces"


def _phases(found: Estimate, extent: Extent) -> Iterator[str]:
    later = grouped(extent)
    tasks = {"map": f"{extent.splits:,} splits"}
    if later is not extent:
        tasks["group"] = f"{later.segments:,} groups of segments"
    tasks |= {
        "dedup": f"{extent.dedup_tasks + extent.drop_ranges:,} tasks, "
        f"{later.dedup_slices:,} slices",
        "merge": f"{sum(extent.shards.values()):,} shards and "
        f"{sum(extent.validation.values()):,} of validation, {later.merge_slices:,} slices",
    }
    yield ""
    yield from _table(
        [(phase, clock(found.seconds[phase]), what) for phase, what in tasks.items()], left=(0, 2)
    )


def _requests(requests: Mapping[str, Requests]) -> Iterator[str]:
    rows = [("requests", *(kind.upper() for kind in KINDS), "all", "fetched")]
    total = sum(requests.values(), Requests())
    for phase, each in {**requests, "all": total}.items():
        counts = (*(getattr(each, kind) for kind in KINDS), each.all)
        rows.append((phase, *(f"{count:,.0f}" for count in counts), size(each.bytes)))
    yield ""
    yield from _table(rows)


def advice(found: Estimate, options: Options) -> Iterator[str]:
    """Yield what of the estimate is worth changing, and how."""
    extent = found.extent
    slices = extent.slices
    if slices > MOST_SLICES:
        yield (
            f"{slices:,} slices are more than {MOST_SLICES:,}: segments are merged into "
            f"{grouped(extent).segments:,} groups first, which reads and writes them once more"
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
    busy = extent.splits
    if busy < found.workers:
        yield f"only {busy} of {found.workers} workers have a split to map: --split-bytes is large"
    rejects = extent.total("rejects") / max(extent.total("records"), 1)
    if rejects > options.max_reject_rate:
        yield (
            f"{100 * rejects:.2g} % of the sample cannot be read: more than --max-reject-rate "
            f"{options.max_reject_rate:g} allows"
        )


def _table(rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def size(count: float) -> str:
    """Return a number of bytes as a person reads it."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < _STEP or unit == "TB":
            break
        count /= _STEP
    return f"{count:.3g} {unit}" if count < _STEP else f"{count:,.0f} {unit}"


def clock(seconds: float) -> str:
    """Return a time as a person reads it."""
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:,.1f} h" if seconds < 2 * _DAY else f"{seconds / _DAY:,.1f} days"
