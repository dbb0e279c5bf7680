"""Sections of documents: examples of what was kept and dropped, and what could not be read."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.report.figures import short, size, whole
from pipelines.report.markup import Markup, joined, tag
from pipelines.report.tables import folded, told
from pipelines.segments.rows import DROPPED, KEPT, QUARANTINED

_FIRST_CHARACTERS = 160
_REJECTS_SHOWN = 5
_ROW_BYTES = 16


def examples(report: Mapping[str, Any]) -> Markup:
    """Return the section of documents that were kept or dropped."""
    return told(
        "A random sample, the same for every run over this input: of each source and reason "
        "the documents with the smallest order hash. Texts are as the stages left them, cut to "
        "their beginning; a \u2039U+…\u203a or a sign such as \u2400 stands for a character that "
        "would not be seen.",
        *_by_reason(report, (KEPT, DROPPED), _example),
    )


def rejects(report: Mapping[str, Any]) -> Markup:
    """Return the section of what could not be read; nothing if everything could."""
    parts = _by_reason(report, (QUARANTINED,), _reject, most=_REJECTS_SHOWN)
    if not parts:
        return Markup()
    return told(
        "The first bytes of some records that could not be read and were quarantined, as they lie "
        "in the file. All of them are in the dataset's folder rejects/.",
        *parts,
    )


def _by_reason(
    report: Mapping[str, Any], verdicts: Sequence[str], show: Any, *, most: int | None = None
) -> list[Markup]:
    parts = []
    several = len(report["examples"]) > 1
    for source, reasons in report["examples"].items():
        shown = [
            folded(
                _summary(row, len(reasons[row["reason"]][:most])),
                *(show(each) for each in reasons[row["reason"]][:most]),
            )
            for row in _in_order(report["funnel"][source], verdicts)
            if row["reason"] in reasons
        ]
        parts += [tag("h3", source)] if several and shown else []
        parts += shown
    return parts


def _in_order(
    rows: Sequence[Mapping[str, Any]], verdicts: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Return the rows of some verdicts in the order of these."""
    return [row for verdict in verdicts for row in rows if row["verdict"] == verdict]


def _summary(row: Mapping[str, Any], shown: int) -> Markup:
    name = KEPT if row["verdict"] == KEPT else row["reason"]
    told = f" {shown} of {whole(row['rows'])}"
    return joined(tag("b", name), tag("span", told, class_="faint"))


def _example(row: Mapping[str, Any]) -> Markup:
    text = row["text"]
    first = " ".join(text[:_FIRST_CHARACTERS].split())
    cut = len(text.encode()) < (row["bytes"] or 0)
    return tag(
        "details",
        tag(
            "summary",
            _place(row),
            *(tag("span", fact, class_="faint") for fact in _facts(row)),
            tag("bdi", first, class_="first", dir="auto"),
        ),
        tag("div", joined(text, "…" if cut else ""), class_="text", dir="auto"),
        class_="example",
    )


def _place(row: Mapping[str, Any]) -> Markup:
    ordinal = f" · {row['ordinal']}" if row["ordinal"] else ""
    return tag("code", tag("bdi", row["path"]), f" @ {row['position']}{ordinal}")


def _facts(row: Mapping[str, Any]) -> list[str]:
    """Return what is known of a document, as far as the stages came with it."""
    facts = [row["group"]] if row["group"] else []
    if row["language"]:
        score = "" if row["score"] is None else f" {row['score']:.2f}"
        facts.append(f"{row['language']}{score}")
    facts.append(size(row["bytes"] or 0))
    if row["tokens"]:
        facts.append(f"{whole(row['tokens'])} tokens")
    if broken := row["broken"]:
        facts.append(
            f"{broken['metric']} {short(broken['value'])} {broken['comparison']} "
            f"{short(broken['bound'])}"
        )
    return facts


def _reject(row: Mapping[str, Any]) -> Markup:
    raw = bytes.fromhex(row["head"] or "")
    return tag(
        "div",
        tag("p", _place(row), class_="note"),
        tag("div", _dump(raw) or "(nothing was kept of it)", class_="text raw", dir="ltr"),
    )


def _dump(raw: bytes) -> str:
    """Return bytes in lines of hexadecimal figures, and below them as text."""
    if not raw:
        return ""
    lines = [raw[at : at + _ROW_BYTES].hex(" ") for at in range(0, min(len(raw), 64), _ROW_BYTES)]
    return "\n".join([*lines, "", raw.decode(errors="replace")])
