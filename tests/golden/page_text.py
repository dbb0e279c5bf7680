"""Returns the text of a page as lines, including tables' rows, forms' fields and links' targets."""

import hashlib
import re
import sys
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path

_ENDS = frozenset(
    {
        "tr", "p", "h1", "h2", "h3", "dd", "div", "form", "article", "li", "summary", "pre",
        "title", "header", "section", "figure", "details", "figcaption", "ul", "svg", "text",
    }
)  # fmt: skip


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.links: list[tuple[str, str]] = []
        self._row: list[str] = []
        self._to = ""
        self._label: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attrs = dict(attrs)
        self._silent += tag in ("nav", "style")
        if tag == "a":
            self._to, self._label = attrs.get("href") or "", []
            self._say(*(f"{{{attrs[name]}}}" for name in ("title", "class") if attrs.get(name)))
        if tag in ("input", "progress", "meta") and attrs.get("name") != "viewport":
            names = ("type", "name", "value", "max", "http-equiv", "content", "charset")
            self._say(f"[{_shown(attrs, names)}]")
        if tag in ("form", "select", "option", "details"):
            names = ("action", "name", "value", "selected", "open")
            self._say(f"({tag} {_shown(attrs, names)})")

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            label = " ".join("".join(self._label).split())
            self.links.append((label, self._to))
            self._say(f"<{self._to}>")
        if tag in _ENDS and self._row:
            self.lines.append(" | ".join(self._row))
            self._row = []
        self._silent -= tag in ("nav", "style")

    def handle_data(self, data: str) -> None:
        self._label.append(data)
        if data.strip():
            self._say(" ".join(data.split()))

    def _say(self, *words: str) -> None:
        if not self._silent:
            self._row += words


def _shown(attrs: Mapping[str, str | None], names: Sequence[str]) -> str:
    return " ".join(f"{name}={attrs[name]}" for name in names if attrs.get(name) is not None)


def lines_of(page: str) -> list[str]:
    """Return the text of a page as lines."""
    return _read(page).lines


def links_of(page: str) -> list[tuple[str, str]]:
    """Return the labels and targets of the links of a page."""
    return _read(page).links


def _read(page: str) -> _Text:
    text = _Text()
    text.feed(page)
    text.close()
    if text._row:
        text.lines.append(" | ".join(text._row))
    return text


def main() -> None:
    """Print the sections of a report: python -m tests.golden.page_text PAGE [SECTION …]."""
    page, *sections = sys.argv[1:]
    text = Path(page).read_text("utf-8")
    for id_, section in re.findall(r'<section id="?([\w-]+)"?[^>]*>(.*?)</section>', text, re.S):
        if id_ == _OF_THE_MACHINE or (sections and id_ not in sections):
            continue
        print(f"== {id_}")
        print(
            *(_timeless(line, id_) for line in lines_of(section) if not _TICK.match(line)), sep="\n"
        )
        if id_ not in _TIMED:
            for drawing in re.findall(r"<svg.*?</svg>", section, re.S):
                print("drawing", hashlib.sha256(drawing.encode()).hexdigest()[:12])


_TIMED = ("speed", "wall-time", "projection")
_OF_THE_MACHINE = "about"
_TICK = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d \| ")
_KEPT_CELLS = {"speed": 1, "projection": 4}


def _timeless(line: str, section: str) -> str:
    """Return a line of a section after removing the figures that depend on times."""
    kept = _KEPT_CELLS.get(section)
    numbers = r"\d[\d.,]*"
    if kept is None:
        return line
    cells = line.split(" | ")
    if len(cells) == 1:
        return re.sub(numbers, "N", line) if section == "projection" else line
    return " | ".join(
        [*cells[:kept], *(re.sub(f"{numbers}.*", "N", each) for each in cells[kept:])]
    )


if __name__ == "__main__":
    main()
