"""Renders pages as HTML: templates escape every value and make invisible characters visible.

Only macros of the templates create elements; only `address` creates addresses, so that no text of a
dataset ever becomes a link. The same environment renders the report of a run: shared.html.j2 and
base.css are the parts that both use.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlencode

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from shards.commands.output import visible
from shards.view.labels import chinese, metric_words, reason_words

PACKAGE = "shards.view"
STYLE = "viewer.css"
"""The only file that is served besides pages."""

LANGUAGES = ("en", "zh")

_LARGE = 1e4
"""The value from which figures are shown without a fraction."""


@dataclass(frozen=True, kw_only=True)
class Redirect:
    """The address of another page."""

    to: str


@dataclass(frozen=True)
class Page:
    """A template with the values to fill in."""

    template: str
    values: Mapping[str, Any]


def address(page: str, values: Mapping[str, object] | None = None, *, part: str = "") -> str:
    """Return the address of a page.

    Args:
        page: The name of the page in the server's table.
        values: The values of its parameters; None and empty values are left out.
        part: The id of an element of the page.
    """
    given = {name: value for name, value in (values or {}).items() if value not in (None, "")}
    query = f"?{urlencode(given)}" if given else ""
    return f"/{page}{query}{f'#{part}' if part else ''}"


def render(template: str, *, language: str = "en", **values: Any) -> str:
    """Render a template of the viewer with values."""
    page = environment(PACKAGE).get_template(f"{template}.html.j2")
    return page.render(language=language, **values)


def style() -> bytes:
    """Return the style sheet."""
    return environment(PACKAGE).get_template(STYLE).render().encode()


@cache
def environment(package: str) -> Environment:
    """Return the environment for the templates of a package, which may import the viewer's."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(PACKAGE)]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"address": address}
    named = (chinese, metric_words, reason_words, cell, exact)
    environment.filters |= {function.__name__: function for function in named}
    environment.filters |= {"combine": _combined, "size": byte_size}
    return environment


def _shown(value: object) -> object:
    """Return the form of a value that a template shows, before escaping."""
    if value is None:
        return ""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _combined(values: Mapping[str, object], **more: object) -> dict[str, object]:
    return {**values, **more}


def cell(value: object) -> str:
    """Return a value of a column as text for people."""
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < _LARGE else f"{value:,.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)


def exact(value: float | None) -> str:
    """Return a number with all digits, for a field of a form."""
    if value is None:
        return ""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def byte_size(number: int) -> str:
    """Return a size as text in a suitable unit."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= scale:
            return f"{number / scale:,.1f} {unit}"
    return f"{number:,} B"
