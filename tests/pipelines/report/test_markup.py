from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.report.markup import Markup, escaped, joined, tag, visible
from tests.pipelines.report.reading import Page


@pytest.mark.parametrize(
    ("made", "html"),
    [
        (tag("p", "a < b & c"), "<p>a &lt; b &amp; c</p>"),
        (tag("p", tag("b", "x"), "<b>"), "<p><b>x</b>&lt;b&gt;</p>"),
        (tag("a", href='"><img>'), '<a href="&quot;&gt;&lt;img&gt;"></a>'),
        (tag("p", class_="n", id=None, text_anchor="end"), '<p class="n" text-anchor="end"></p>'),
        (tag("meta", charset="utf-8"), '<meta charset="utf-8">'),
        (tag("meta", name="viewport"), '<meta name="viewport">'),
        (joined("<", Markup("<br>")), "&lt;<br>"),
    ],
)
def test_elements(made: Markup, html: str) -> None:
    assert made == html
    assert isinstance(made, Markup)


@pytest.mark.parametrize("name", ["on click", "a>", "", "1a"])
def test_a_name_of_an_attribute_cannot_smuggle_anything(name: str) -> None:
    with pytest.raises(ValueError, match="no name of an attribute"):
        tag("p", **{name: "x"})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\n\tb", "a\n\tb"),
        ("\0\x1b[31m\r\x7f", "␀␛[31m␍␡"),
        ("\u202eevil\u2066", "‹U+202E›evil‹U+2066›"),
        ("\x85\ufeff\ufffe\U0010ffff", "‹U+0085›‹U+FEFF›‹U+FFFE›‹U+10FFFF›"),
        ("中文 é 😀 \u200d", "中文 é 😀 \u200d"),
    ],
)
def test_what_acts_unseen_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_any_text_stays_text(text: str) -> None:
    html = escaped(text)
    assert unescape(html) == visible(text)
    document = f"<!doctype html>\n{tag('p', text, title=text)}"
    page = Page(document)
    assert page.text.strip() == visible(text).strip()
    assert page.named("p") == [{"title": visible(text)}]
