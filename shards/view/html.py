"""Pages as HTML: templates whose every value is escaped, and shown if it would act unseen.

A value becomes an element only if a macro of the templates made it; addresses are made by
`address` alone, so that no text of a dataset is ever linked to.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from shards.commands.shown import visible

STYLE = "viewer.css"
"""The one file besides pages."""

_LARGE = 1e4
"""From here on a figure has no fraction."""


@dataclass(frozen=True, kw_only=True)
class Redirect:
    """Another page that shows what was asked for."""

    to: str


def address(page: str, values: Mapping[str, object] | None = None, *, part: str = "") -> str:
    """Return the address of a page.

    Args:
        page: Its name in the server's table.
        values: What it asks for; values that are None or empty are left out.
        part: The id of an element of the page.
    """
    given = {name: value for name, value in (values or {}).items() if value not in (None, "")}
    query = f"?{urlencode(given)}" if given else ""
    return f"/{page}{query}{f'#{part}' if part else ''}"


def render(template: str, **values: Any) -> str:
    """Return a template with values filled in."""
    return _environment().get_template(f"{template}.html.j2").render(**values)


def style() -> bytes:
    """Return the style sheet."""
    return files("shards.view").joinpath("templates", STYLE).read_bytes()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("shards.view"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    chinese = files("shards.view").joinpath("templates", "chinese.json").read_text("utf-8")
    environment.globals |= {"address": address, "chinese": json.loads(chinese)}
    environment.filters |= {"cell": cell, "combine": _combined, "exact": exact, "size": byte_size}
    return environment


def _shown(value: object) -> object:
    """Return what a template puts on the page for a value, before it is escaped."""
    if value is None:
        return ""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _combined(values: Mapping[str, object], **more: object) -> dict[str, object]:
    return {**values, **more}


def cell(value: object) -> str:
    """Return a value of a column as a person reads it."""
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < _LARGE else f"{value:,.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)


def exact(value: float | None) -> str:
    """Return a number with all its digits, as a form takes it."""
    if value is None:
        return ""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def byte_size(number: int) -> str:
    """Return a size in the unit that suits it."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= scale:
            return f"{number / scale:,.1f} {unit}"
    return f"{number:,} B"
