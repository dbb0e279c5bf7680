import pytest

from shards.shown import visible
from shards.view.markup import address, between, joined, link, tag


def test_whatever_is_not_markup_is_escaped() -> None:
    assert tag("p", "1 < 2 & '\"") == "<p>1 &lt; 2 &amp; &#x27;&quot;</p>"
    assert tag("p", tag("b", "x"), None, 3, ["a", ["<"]]) == "<p><b>x</b>3a&lt;</p>"
    assert tag("td", title='"><script>', id=None) == '<td title="&quot;&gt;&lt;script&gt;"></td>'
    assert tag("input", name="a", class_="b") == '<input name="a" class="b">'
    assert joined("\u202e\x00") == "‹U+202E›␀"


def test_markup_that_was_changed_is_escaped_again() -> None:
    bold = tag("b", "x")
    assert joined(bold) == "<b>x</b>"
    for changed in (bold + "", f"{bold}", bold.replace("y", "z"), bold[:], bold.strip()):
        assert joined(changed) == "&lt;b&gt;x&lt;/b&gt;"


def test_only_pages_of_the_viewer_are_linked_to() -> None:
    assert link(
        address("documents", {"a": "&=x y", "b": "", "c": None, "d": 0}, part="e"), "f"
    ) == ('<a href="/documents?a=%26%3Dx+y&amp;d=0#e">f</a>')
    for target in ("javascript:alert(1)", "/documents", "//example.org"):
        with pytest.raises(TypeError, match="no address of the viewer"):
            tag("a", href=target)
        with pytest.raises(TypeError, match="no address of the viewer"):
            tag("form", action=target)


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم",
        "👩\u200d🔬",
        "a\u200cb",
        "\u200c",
        "\u202ea\u202c",
        "<a>",
        "1\ufe0f\u20e3",
        "क्\u200dष",
    ],
)
def test_a_text_in_pieces_is_shown_as_the_whole(text: str) -> None:
    pieces = ["", *text, ""]
    shown = [between(*pieces[i : i + 3]) for i in range(len(text))]
    assert "".join(shown) == visible(text).replace("<", "&lt;").replace(">", "&gt;")
