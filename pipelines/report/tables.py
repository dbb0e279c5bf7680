"""Tables of a page, some with bars in them."""

from collections.abc import Iterable, Sequence

from pipelines.report.markup import Markup, joined, tag


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1, foot: Sequence[str] = ()
) -> Markup:
    """Return a table.

    Args:
        heads: Of the columns.
        rows: Cells, text or Markup.
        words: How many columns hold words; those behind hold figures, which stand to the right.
        foot: Cells of a last row, for sums.
    """

    def cells(name: str, row: Sequence[str]) -> Markup:
        return joined(
            *(tag(name, cell, class_=None if at < words else "n") for at, cell in enumerate(row))
        )

    parts = [
        tag("thead", tag("tr", cells("th", heads))),
        tag("tbody", *(tag("tr", cells("td", row)) for row in rows)),
    ]
    if foot:
        parts.append(tag("tfoot", tag("tr", cells("td", foot))))
    return tag("div", tag("table", *parts), class_="wide")


def bar(part: float, of: float, *, kind: str = "kept") -> Markup:
    """Return a bar as long as the share that a part has; kind is kept, dropped, lost or plain."""
    width = 100 * part / of if of else 0
    least = 0.5 if part else 0.0
    return tag(
        "span",
        tag("span", class_=kind, style=f"width:{max(width, least):.1f}%"),
        class_="bar",
    )


def pairs(rows: Iterable[tuple[str, str]]) -> Markup:
    """Return names and what belongs to each."""
    return tag("dl", *(joined(tag("dt", name), tag("dd", value)) for name, value in rows))


def folded(summary: str, *content: str, opened: bool = False) -> Markup:
    """Return what opens when its summary is chosen."""
    return tag("details", tag("summary", summary), *content, open="" if opened else None)


def section(title: str, content: Markup) -> Markup:
    """Return a section; its title is its id too."""
    return tag("section", tag("h2", title), content, id=anchor(title))


def anchor(title: str) -> str:
    """Return the id of the section of a title."""
    return "-".join(title.lower().split())


def told(about: str, *content: str) -> Markup:
    """Return what is shown under a sentence or two about it."""
    return joined(tag("p", about, class_="about"), *content)
