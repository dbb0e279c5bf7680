"""Prints the text in some sections of a page: page_text.py PAGE SECTION …"""

import sys
from html.parser import HTMLParser
from pathlib import Path


class Text(HTMLParser):
    """The pieces of text in sections with these ids."""

    def __init__(self, sections: list[str]) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._sections = sections
        self._taken = False
        self._row: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "section":
            self._taken = dict(attributes).get("id") in self._sections

    def handle_endtag(self, tag: str) -> None:
        if tag in ("tr", "p", "h2", "h3", "section", "figure", "details") and self._row:
            self.lines.append(" | ".join(self._row))
            self._row = []

    def handle_data(self, data: str) -> None:
        if self._taken and data.strip():
            self._row.append(" ".join(data.split()))


page = Text(sys.argv[2:])
page.feed(Path(sys.argv[1]).read_text("utf-8"))
print("\n".join(page.lines))
