"""What the tests of the page share: a page read back, strictly, and histograms."""

from html.parser import HTMLParser

import numpy as np

from pipelines.segments.histograms import bins_of

VOID = {"meta", "br", "wbr"}


def counted(*values: float) -> dict[str, int]:
    """The histogram of some values."""
    numbers, counts = np.unique(bins_of(np.array(values, float)), return_counts=True)
    return {str(number): int(count) for number, count in zip(numbers, counts, strict=True)}


class Page(HTMLParser):
    """The elements of a page and its text; what a browser would forgive is an error here."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=False)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[list[str]] = []
        self.words: list[str] = []
        assert html.startswith("<!doctype html>\n")
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        raise AssertionError(f"<{tag}/> is no HTML: {attrs}")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            assert not set("<>&") & set(data), f"not escaped: {data[:100]!r}"
        self._text(data)

    def handle_entityref(self, name: str) -> None:
        self._text({"lt": "<", "gt": ">", "amp": "&"}[name])

    def handle_charref(self, name: str) -> None:
        self._text({"34": '"', "39": "'"}[name])

    def _text(self, data: str) -> None:
        self.words.append(data)
        if {"td", "th"} & set(self.open):
            self.cells[-1][-1] += data

    @property
    def text(self) -> str:
        return "".join(self.words)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every element of a name."""
        return [attributes for name, attributes in self.tags if name == tag]
