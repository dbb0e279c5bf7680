"""The whole page of a run: one file without script, picture file or request to anywhere."""

from collections.abc import Mapping
from typing import Any

from pipelines.report.clusters import clusters
from pipelines.report.cost import phases, projection, throughput
from pipelines.report.documents import examples, rejects
from pipelines.report.figures import amount, hours, share, size, whole
from pipelines.report.funnel import funnels, groups
from pipelines.report.markup import Markup, joined, tag
from pipelines.report.metrics import histograms
from pipelines.report.projection import Costs, costs
from pipelines.report.settings import inputs, settings
from pipelines.report.style import STYLE
from pipelines.report.tables import anchor, pairs, section
from shards.errors import UserError
from shards.manifest import TRAIN, VALIDATION, Manifest, sum_shards

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""No script, picture or request, whatever a document tries."""


def page(manifest: Manifest, report: Mapping[str, Any], *, corpus_size: int | None = None) -> str:
    """Return the page as HTML, a function of its arguments alone.

    Args:
        manifest: Of the dataset.
        report: What report.json holds.
        corpus_size: Bytes of text to project to, besides the usual sizes.

    Raises:
        UserError: The report is of an older corpusmill and lacks what the page shows.
    """
    if "funnel" not in report:
        raise UserError(
            "report.json of this dataset was written by an older corpusmill, without what a page "
            "shows. Build the dataset again to have one"
        )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{manifest.corpus}: report of a corpusmill run"),
        tag("style", Markup(STYLE)),
    )
    sections = _sections(manifest, report, corpus_size)
    links = [tag("a", title, href=f"#{anchor(title)}") for title, _ in sections]
    body = tag(
        "body",
        _header(manifest, report),
        tag("nav", *links),
        *(section(title, content) for title, content in sections),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _sections(
    manifest: Manifest, report: Mapping[str, Any], corpus_size: int | None
) -> list[tuple[str, Markup]]:
    """Return the sections that have something to show, by title."""
    spent = costs(manifest, report)
    sections = {
        "Funnel": funnels(manifest, report),
        "Parts": groups(report),
        "Distributions": histograms(report, manifest.options),
        "Duplicates": clusters(report),
        "Examples": examples(report),
        "Rejects": rejects(report),
        **({} if spent is None else _spent(spent, report, corpus_size)),
        "Settings": settings(manifest, report),
        "Inputs": inputs(manifest),
    }
    return [(title, content) for title, content in sections.items() if content]


def _spent(spent: Costs, report: Mapping[str, Any], corpus_size: int | None) -> dict[str, Markup]:
    return {
        "Throughput": throughput(spent, report),
        "Wall time": phases(spent, report),
        "Projection": projection(spent, report, asked=corpus_size),
    }


def _header(manifest: Manifest, report: Mapping[str, Any]) -> Markup:
    machine = report["machine"]
    where = f"{machine['host']}, {machine['cores']} cores"
    facts = [
        ("dataset", joined(tag("span", manifest.identity, class_="id"))),
        ("finished", report["finished"].replace("T", " ").replace("+00:00", " UTC")),
        ("machine", ", ".join(filter(None, [where, machine["cpu"], machine["system"]]))),
        ("Python", machine["python"]),
    ]
    changed = report["dataset"] != manifest.identity
    return tag(
        "header",
        tag("h1", manifest.corpus),
        pairs(facts),
        *([tag("p", _CHANGED, class_="warn")] if changed else []),
        tag("div", *(_tile(*each) for each in _tiles(manifest, report)), class_="tiles"),
    )


_CHANGED = "The dataset has changed since this run; shards and tokens are those of today."


def _tile(figure: str, about: str) -> Markup:
    return tag("div", tag("b", figure), tag("span", about), class_="tile")


def _tiles(manifest: Manifest, report: Mapping[str, Any]) -> list[tuple[str, str]]:
    account = report["accounting"].values()
    read, kept = (sum(figures[name] for figures in account) for name in ("read", "kept"))
    text = sum(sum(figures["bytes"].values()) for figures in account)
    train, held = (sum_shards(manifest.shards(split=split)) for split in (TRAIN, VALIDATION))
    return [
        (whole(read), f"documents read, {size(text)} of text"),
        (share(kept, read), f"kept: {whole(kept)} documents"),
        (amount(train.tokens), f"tokens to train on, {whole(held.tokens)} held out"),
        (whole(train.shards), f"shards to train on, {size(train.bytes)}"),
        (hours(report["elapsed"] / 3600), "from start to end"),
    ]
