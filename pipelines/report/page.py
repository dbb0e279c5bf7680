"""Makes the page about a run, one file that needs no scripts, picture files or requests.

This package computes the content. templates/ determines how the page looks: page.html.j2, one
template per section, named by the section's id, and report.css.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from pipelines.report import formats, sections
from pipelines.report.distributions import distributions
from pipelines.report.languages import language_tag
from pipelines.report.projection import run_costs, text_read
from pipelines.segments.rows import DROPPED, KEPT, QUARANTINED
from shards.commands.flags import flag_of
from shards.errors import UserError
from shards.manifest import Manifest, Totals, sum_shards
from shards.show import changed_options

if TYPE_CHECKING:
    from jinja2 import Environment

_FILTERS = (
    formats.amount,
    formats.byte_size,
    formats.chinese_amount,
    formats.duration,
    formats.hex_dump,
    formats.option_text,
    formats.percent,
    formats.short,
    formats.whole,
    sections.by_size,
    sections.in_order,
    sections.sums,
    language_tag,
    flag_of,
)

_FOLDED = ("Subsets", "Unknown tokens", "Duplicates", "Wall time", "Inputs", "About")
"""The sections that stay closed until a click opens them."""


def page(
    name: str,
    manifest: Manifest,
    report: Mapping[str, Any],
    *,
    corpus_size: int | None = None,
) -> str:
    """Return the page as HTML, which depends only on the arguments.

    Args:
        name: The dataset's folder, as the title shows it.
        manifest: The manifest of the dataset.
        report: The content of report.json.
        corpus_size: A number of bytes of text to project to, in addition to the usual sizes.

    Raises:
        UserError: An older corpusmill wrote the report, which lacks figures that the page shows.
        LookupError, TypeError, ValueError …: The report does not have the form that runs write.
    """
    if "funnel" not in report:
        raise UserError(
            "report.json of this dataset was written by an older corpusmill and lacks figures that "
            "the page shows. Build the dataset again to get a page"
        )

    last = replace(manifest, generations=manifest.generations[-1:])

    def shard_totals(source: str | None, split: str) -> Totals:
        return sum_shards(manifest.shards(source, split=split))

    def run_totals(source: str, split: str) -> Totals:
        return sum_shards(last.shards(source, split=split))

    costs = run_costs(last, report)
    has_projection = costs is not None and (costs.is_projectable or bool(corpus_size))
    duplicates = dict(sections.duplicates(report.get("dedup", {})))
    unknown = sections.unknown_tokens(report.get("unknown_tokens", {}))
    shown = {
        "Funnel": True,
        "Examples": True,
        "Unreadable records": sections.has_rejects(report),
        "Distributions": True,
        "Duplicates": bool(duplicates),
        "Subsets": any(report["groups"].values()),
        "Unknown tokens": bool(unknown),
        "Speed": costs is not None,
        "Wall time": costs is not None,
        "Projection": has_projection,
        "Settings": True,
        "Inputs": True,
        "About": True,
    }
    return _rendered(
        name=name,
        manifest=manifest,
        report=report,
        changed=dict(changed_options(manifest.corpus, manifest.options)),
        corpus_size=corpus_size,
        costs=costs,
        distributions=distributions(report, manifest.options),
        duplicates=duplicates,
        folded=_FOLDED,
        run_totals=run_totals,
        sections={_section_id(title): title for title, has_content in shown.items() if has_content},
        shard_totals=shard_totals,
        text_bytes=text_read(report),
        unknown=unknown,
        verdicts=(KEPT, DROPPED, QUARANTINED),
    )


def _rendered(**values: Any) -> str:
    # Imported here, because most processes of a run do not write a page.
    from jinja2 import TemplateError  # noqa: PLC0415

    try:
        return _environment().get_template("page.html.j2").render(language="both", **values) + "\n"
    except TemplateError as error:
        raise ValueError(str(error)) from error


def _section_id(title: str) -> str:
    return title.lower().replace(" ", "-")


@cache
def _environment() -> "Environment":
    # Imported here, because most processes of a run do not write a page.
    from shards.view.html import environment  # noqa: PLC0415

    filled = environment("pipelines.report")
    filled.filters |= {function.__name__: function for function in _FILTERS}
    return filled
