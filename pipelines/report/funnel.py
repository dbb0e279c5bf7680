"""Sections about what became of the documents: by source, stage and reason, and by group."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.report.figures import share, size, whole
from pipelines.report.markup import Markup, joined, tag
from pipelines.report.tables import bar, folded, table, told
from pipelines.segments.rows import DROPPED, KEPT, QUARANTINED
from shards.manifest import TRAIN, VALIDATION, Manifest, sum_shards

KINDS = {KEPT: "kept", DROPPED: "dropped", QUARANTINED: "lost"}
"""The class that colours each verdict."""

_MOST_OPEN = 4
_SUMS = ("rows", "bytes", "tokens")


def funnels(manifest: Manifest, report: Mapping[str, Any]) -> Markup:
    """Return the section that follows the documents of each source through the stages."""
    found = report["funnel"]
    parts = [_sources(manifest, found)] if len(found) > 1 else []
    for source, rows in found.items():
        content = _funnel(manifest, source, rows, account=report["accounting"][source])
        parts += [content] if len(found) == 1 else [
            folded(source, content, opened=len(found) <= _MOST_OPEN)
        ]  # fmt: skip
    return told(
        "Each record read was kept, dropped for a reason, or quarantined because it could "
        "not be read. Bytes are UTF-8 bytes of the text as read; only documents that reached the "
        "tokenizer have tokens.",
        _stack(found),
        *parts,
    )


def _stack(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Markup:
    """Return all documents as one bar, by verdict."""
    sums = {
        verdict: sum(
            row["rows"] for rows in found.values() for row in rows if row["verdict"] == verdict
        )
        for verdict in KINDS
    }
    every = sum(sums.values())
    spans = [
        tag("span", class_=KINDS[verdict], style=f"width:{100 * rows / max(1, every):.2f}%")
        for verdict, rows in sums.items()
    ]
    keys = [
        joined(
            tag("span", class_=f"key {KINDS[verdict]}"),
            f"{whole(rows)} {verdict}, {share(rows, every)}",
        )
        for verdict, rows in sums.items()
        if rows
    ]
    return joined(tag("div", *spans, class_="stack"), tag("p", *keys))


def _sources(manifest: Manifest, found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Markup:
    rows = []
    for source, reasons in found.items():
        read, kept = _sums(reasons), _sums(reasons, KEPT)
        made = [sum_shards(manifest.shards(source, split=split)) for split in (TRAIN, VALIDATION)]
        rows.append(
            (
                source,
                whole(read["rows"]),
                size(read["bytes"]),
                whole(kept["rows"]),
                share(kept["rows"], read["rows"]),
                share(kept["bytes"], read["bytes"]),
                *(whole(each.tokens) for each in made),
            )
        )
    heads = (
        "source", "read", "text", "kept", "of documents", "of bytes", "train tokens",
        "validation tokens",
    )  # fmt: skip
    return table(heads, rows)


def _sums(rows: Sequence[Mapping[str, Any]], verdict: str | None = None) -> dict[str, int]:
    taken = [row for row in rows if verdict in (None, row["verdict"])]
    return {name: sum(row[name] for row in taken) for name in _SUMS}


def _funnel(
    manifest: Manifest,
    source: str,
    reasons: Sequence[Mapping[str, Any]],
    *,
    account: Mapping[str, Any],
) -> Markup:
    read, kept = _sums(reasons), _sums(reasons, KEPT)
    rows = [_row("read", "", read, read, kind="plain")]
    rows += [
        _row(row["stage"], row["reason"], row, read, kind=KINDS[row["verdict"]])
        for row in reasons
        if row["verdict"] != KEPT
    ]
    rows.append(_row("kept", "", kept, read, kind=KEPT))
    for split in (TRAIN, VALIDATION):
        made = sum_shards(manifest.shards(source, split=split))
        name = f"{split}, {whole(made.shards)} shard{'' if made.shards == 1 else 's'}"
        figures = {"rows": made.documents, "tokens": made.tokens}
        rows.append(_row("", name, figures, read, kind=KEPT))
    heads = ("stage", "reason", "documents", "share", "bytes", "tokens", "")
    return joined(table(heads, rows, words=2), _notes(account))


def _row(
    stage: str, reason: str, figures: Mapping[str, Any], read: Mapping[str, int], *, kind: str
) -> tuple[str, ...]:
    tokens, text = figures.get("tokens"), figures.get("bytes")
    return (
        tag("b", stage) if stage in ("read", KEPT) and not reason else stage,
        reason,
        whole(figures["rows"]),
        share(figures["rows"], read["rows"]),
        size(text) if text else "–",
        whole(tokens) if tokens else "–",
        bar(figures["rows"], read["rows"], kind=kind),
    )


def _notes(account: Mapping[str, Any]) -> Markup:
    told = []
    if account["not_sampled"]:
        told.append(f"{whole(account['not_sampled'])} more records were left out by --sample.")
    if account["fanned_out"]:
        told.append(
            f"{whole(account['fanned_out'])} of the documents are further ones of their record."
        )
    return tag("p", " ".join(told), class_="note") if told else Markup()


def groups(report: Mapping[str, Any]) -> Markup:
    """Return the section about the parts of each source; nothing if no source has any."""
    parts: list[Markup] = []
    for source, rows in report["groups"].items():
        if rows:
            parts += [tag("h3", source)] if len(report["groups"]) > 1 else []
            parts.append(_groups(rows))
    if not parts:
        return Markup()
    return told(
        "The parts that the corpus names itself, such as subsets or categories, the largest first.",
        *parts,
    )


def _groups(found: Sequence[Mapping[str, Any]]) -> Markup:
    most = max((row[KEPT].get("bytes", 0) for row in found), default=0)
    rows = []
    for row in found:
        kept = row[KEPT]
        every = [row.get(verdict, {}) for verdict in KINDS]
        read = {name: sum(each.get(name, 0) for each in every) for name in _SUMS}
        more = f" ({whole(row['groups'])} parts)" if "groups" in row else ""
        rows.append(
            (
                joined(row["group"] or "(none)", more),
                whole(read["rows"]),
                whole(kept.get("rows", 0)),
                share(kept.get("rows", 0), read["rows"]),
                size(kept.get("bytes", 0)),
                whole(kept.get("tokens", 0)),
                bar(kept.get("bytes", 0), most),
            )
        )
    return table(("part", "read", "kept", "share", "bytes kept", "tokens kept", ""), rows)
