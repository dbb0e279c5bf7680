"""What all pages have in common, and the pieces that several of them are made of."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shards.view.address import BadQuery
from shards.view.markup import Address, Child, Markup, address, joined, link, tag
from shards.view.scan import Found
from shards.view.wording import both, either

STYLE = "viewer.css"
"""The one file besides pages."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page to be shown."""

    title: str
    body: Markup
    status: int = 200


@dataclass(frozen=True, kw_only=True)
class Redirect:
    """Another page that shows what was asked for."""

    to: Address


def html(page: Page, *, name: str, has_run: bool) -> str:
    """Return a page as it is sent.

    Args:
        page: The page.
        name: Of the dataset.
        has_run: Whether steps of a run can be shown.
    """
    places = [("", "Overview"), ("documents", "Documents"), ("records", "Records")]
    places += [("step", "Step")] if has_run else []
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{page.title} · {name}"),
        tag("link", rel="stylesheet", href=address(STYLE)),
    )
    nav = tag("nav", [(link(address(path), both(label)), " ") for path, label in places])
    body = tag("body", tag("header", tag("p", name, class_="name"), nav), tag("main", page.body))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def entry_html() -> str:
    """Return the page that goes on to the first one.

    A browser that came from elsewhere sends the cookie with its next request only, the one that
    this page makes.
    """
    refresh = tag("meta", http_equiv="refresh", content="0;url=/")
    head = tag("head", tag("meta", charset="utf-8"), refresh, tag("title", "…"))
    return f"<!DOCTYPE html>\n{tag('html', head, tag('body', link(address(''), both('go on'))))}\n"


def heading(english: str, *more: Child) -> Markup:
    """Return the heading of a page."""
    return tag("h1", both(english), *more)


def section(english: str, *content: Child, id_: str | None = None) -> Markup:
    """Return a part of a page under a heading."""
    return tag("section", tag("h2", both(english)), *content, id=id_)


def table(head: Sequence[str], rows: Iterable[Sequence[Child]], *, words: int = 1) -> Markup:
    """Return a table that scrolls sideways where it is too wide.

    Args:
        head: Labels of the columns.
        rows: The cells.
        words: How many columns on the left hold words; the others are figures, on the right.
    """
    labels = tag("tr", [tag("th", both(label)) for label in head])
    body = [tag("tr", [tag("td", cell) for cell in row]) for row in rows]
    content = tag("table", tag("thead", labels), tag("tbody", body), class_=f"words-{words}")
    return tag("div", content, class_="wide", tabindex="0")


def pairs(values: Mapping[str, Child]) -> Markup:
    """Return names with their values below each other."""
    return tag("dl", [(tag("dt", both(name)), tag("dd", value)) for name, value in values.items()])


def field(english: str, control: Markup) -> Markup:
    """Return a control of a form with its label."""
    return tag("label", tag("span", both(english)), control)


def entry(name: str, value: str, *, kind: str = "text") -> Markup:
    """Return a field for text or a number."""
    mode = "decimal" if kind == "number" else None
    return tag("input", name=name, value=value, inputmode=mode, autocomplete="off", maxlength=2000)


def choice(name: str, value: str, options: Iterable[str], *, none: str = "all") -> Markup:
    """Return a list to choose from; its first line stands for nothing in particular."""
    lines = [tag("option", either(none), value="")] if none else []
    lines += [
        tag("option", either(each), value=each, selected="" if each == value else None)
        for each in options
    ]
    return tag("select", lines, name=name)


def form(path: str, *fields: Child, kept: Mapping[str, object] | None = None) -> Markup:
    """Return a form that asks for a page.

    Args:
        path: The page.
        fields: What is asked for.
        kept: Values that are sent along.
    """
    others = [
        tag("input", type="hidden", name=name, value=str(value))
        for name, value in (kept or {}).items()
        if value not in (None, "")
    ]
    button = tag("button", both("go"), type="submit")
    return tag("form", *fields, others, button, action=address(path), method="get")


def steps(links: Mapping[str, Address | None]) -> Markup:
    """Return links to the pages before and after this one, by label; None where there is none."""
    keys = {"previous": "p", "next": "n", "go on": "n", "random": "r", "first": "f"}
    shown = [
        link(to, both(label), accesskey=keys[label], rel=_REL.get(label))
        for label, to in links.items()
        if to is not None
    ]
    return tag("p", [(each, " ") for each in shown], class_="steps")


_REL = {"previous": "prev", "next": "next", "go on": "next"}


def progress(found: Found[Any], *, what: str, to: Address) -> Markup:
    """Return how far a search has come, with the link that goes on.

    Args:
        found: What was found so far.
        what: What it looks at.
        to: Where it goes on.

    Raises:
        BadQuery: It was to begin beyond the end.
    """
    if found.start > found.total:
        raise BadQuery(f"There are {found.total:,} {what}: at {found.start:,} there is nothing.")
    num = len(found.hits)
    hits = "1 found" if num == 1 else f"{num:,} found"
    span = f"Searched {found.start:,} to {found.at:,} of {found.total:,} {what}"
    if found.is_complete:
        ended = tag("span", "已到末尾", lang="zh", class_="zh")
        return tag("p", f"{span}, to the end: {hits}. ", ended, class_="note")
    ended = tag("span", "尚未完成", lang="zh", class_="zh")
    return joined(
        tag("p", f"{span}: {hits}. ", ended, class_="note"),
        tag("progress", value=found.at, max=max(found.total, 1)),
        steps({"go on": to}),
    )


def exact(value: float) -> str:
    """Return a number with all its digits, as a form takes it."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def count_bytes(number: int) -> str:
    """Return a size in the unit that suits it."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= scale:
            return f"{number / scale:,.1f} {unit}"
    return f"{number:,} B"
