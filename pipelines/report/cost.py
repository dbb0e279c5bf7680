"""Sections about time: what each stage and phase took, and what a larger corpus would take."""

from collections.abc import Mapping
from typing import Any

from pipelines.report.figures import amount, hours, share, short, size, whole
from pipelines.report.markup import Markup, joined, tag
from pipelines.report.projection import MAP, Costs
from pipelines.report.tables import bar, table, told

STAGES = (
    "read", "block", "clean", "langid", "assess", "decontaminate", "mask", "tokenize",
    "fingerprint", "segment",
)  # fmt: skip
_NAMES = {
    "read": "read: unpack, parse, make the text",
    "block": "block: URL blocklist",
    "clean": "clean: repair Unicode",
    "langid": "langid: language",
    "assess": "assess: language and quality rules",
    "decontaminate": "decontaminate: benchmarks",
    "mask": "mask: personal data",
    "tokenize": "tokenize",
    "fingerprint": "fingerprint: hash of the text",
    "segment": "segment: sort and write",
}
_PHASES = ("map", "group", "dedup", "components", "drops", "mates", "merge")

PROJECTED = (10**11, 10**12, 3 * 10**12, 10**14)
"""Bytes of text that every page projects to."""

_CORES = (16, 64, 256, 1024)
_SMALL = 50_000_000
"""A run over less text than this says little of a large one."""

_SHORT = 10
"""A map of fewer seconds spends them on its start."""


def throughput(costs: Costs, report: Mapping[str, Any]) -> Markup:
    """Return the section about the stages of the map."""
    every = sum(costs.map_seconds.values())
    names = sorted(costs.map_seconds, key=lambda name: (_at(name, STAGES), name))
    most = max(costs.map_seconds.values(), default=0)
    rows = [
        (
            _NAMES.get(name, name),
            short(seconds := costs.map_seconds[name]),
            share(seconds, every),
            _rate(costs.text_bytes, seconds),
            bar(seconds, most, kind="plain"),
        )
        for name in names
    ]
    heads = ("stage", "CPU seconds", "share", "MB/s on a core", "")
    foot = ("all stages", short(every), "", _rate(costs.text_bytes, every), "")
    sampled = any(figures["not_sampled"] for figures in report["accounting"].values())
    left_out = " Reading what --sample left out is not counted." if sampled else ""
    return told(
        "CPU time of the map by stage, all workers together. MB/s is the text of the whole run, "
        f"{size(costs.text_bytes)} of UTF-8, over the stage's time: a stage that sees fewer "
        f"documents seems faster.{left_out}",
        table(heads, rows, foot=foot),
    )


def phases(costs: Costs, report: Mapping[str, Any]) -> Markup:
    """Return the section about the phases of the run."""
    seconds, tasks = report["seconds"], report["tasks"]
    names = sorted(tasks, key=lambda name: (_at(name, _PHASES), name))
    rest = report["elapsed"] - sum(seconds.values())
    most = max([*seconds.values(), rest])
    rows = [
        (
            name,
            whole(tasks[name]["all"]),
            whole(tasks[name]["finished_before"]),
            _seconds(seconds.get(name, 0.0)),
            bar(seconds.get(name, 0.0), most, kind="plain"),
        )
        for name in names
    ]
    rows.append(("plan, commit and the rest", "", "", _seconds(rest), bar(rest, most, kind="lost")))
    heads = ("phase", "tasks", "done before", "wall time", "")
    foot = ("this attempt", "", "", _seconds(report["elapsed"]), "")
    return told(_busy(costs, report), table(heads, rows, foot=foot))


def _busy(costs: Costs, report: Mapping[str, Any]) -> str:
    workers = report["workers"]
    where = f"{workers} worker processes" if workers > 1 else "one worker process"
    if not workers:
        where = "the process that was started, or the workers of a cluster"
    if report["tasks"].get(MAP, {}).get("finished_before") or MAP not in report["seconds"]:
        return (
            f"Tasks ran in {where}. Those done before were finished by an earlier attempt, whose "
            "wall time is not known."
        )
    if report["seconds"][MAP] < _SHORT:
        return f"Tasks ran in {where}."
    cores = sum(costs.map_seconds.values()) / report["seconds"][MAP]
    return f"Tasks ran in {where}. The map kept {short(cores)} cores busy on average."


def projection(costs: Costs, report: Mapping[str, Any], *, asked: int | None) -> Markup:
    """Return the section that projects the run to larger corpora.

    Args:
        costs: What the run took.
        report: What report.json holds.
        asked: A further size, in bytes of text.
    """
    cores = sorted({report["machine"]["cores"] or 1, *_CORES})
    sizes = sorted({*PROJECTED, *([asked] if asked else [])})
    heads = ("text", "files", "tokens", "shards", "CPU hours", *(f"on {n:,} cores" for n in cores))
    rows = [
        (
            tag("b", size(found.text_bytes)) if text == asked else size(found.text_bytes),
            size(found.file_bytes),
            amount(found.tokens),
            size(found.dataset_bytes),
            whole(found.cpu_hours) if found.cpu_hours >= 100 else short(found.cpu_hours),  # noqa: PLR2004  three figures
            *(hours(found.wall_hours(each)) for each in cores),
        )
        for text in sizes
        for found in [costs.projected(text)]
    ]
    return told(
        "What a corpus of so much text, of the same kind and with the same options, would take on "
        "cores like these that are never idle.",
        *([_warning(costs)] if costs.text_bytes < _SMALL else []),
        table(heads, rows, words=0),
        tag("p", _basis(costs), class_="note"),
    )


def _warning(costs: Costs) -> Markup:
    text = (
        f"This run read {size(costs.text_bytes)} of text. That is too little to project from: "
        "starting the phases weighs as much as the work. Run a sample of some hundred megabytes."
    )
    return tag("p", text, class_="warn")


def _basis(costs: Costs) -> Markup:
    mapped = sum(costs.map_seconds.values())
    return joined(
        f"Linear in the bytes of text: {short(costs.cpu_seconds / costs.text_bytes * 1e9)} CPU "
        f"seconds per GB, of which the map {short(mapped / costs.text_bytes * 1e9)} (measured) and "
        f"the later phases {short(costs.later_seconds / costs.text_bytes * 1e9)} (wall time times "
        "workers, so an upper bound). A larger corpus has more duplicates, and so fewer tokens."
    )


def _rate(text_bytes: int, seconds: float) -> str:
    return short(text_bytes / 1e6 / seconds) if seconds else "–"


def _seconds(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds < 120 else hours(seconds / 3600)  # noqa: PLR2004  two minutes


def _at(name: str, order: tuple[str, ...]) -> int:
    return order.index(name) if name in order else len(order)
