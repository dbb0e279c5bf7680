from pathlib import Path

import pytest

from shards.view.pages.documents import marked
from tests.shards.view.conftest import NEAR, Show


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("a < b", "", "a &lt; b"),
        ("A <b> a", "a", "<mark>A</mark> &lt;b&gt; <mark>a</mark>"),
        ("<script>", "<Script>", "<mark>&lt;script&gt;</mark>"),
        ("a.c abc", "a.c", "<mark>a.c</mark> abc"),
        ("天气 fine", "天气", "<mark>天气</mark> fine"),
        ("İi ſ", "s", "İi ſ"),
    ],
)
def test_words_are_marked(text: str, words: str, expected: str) -> None:
    assert marked(text, words) == expected


def test_a_text_is_shown_around_the_words_that_were_found(show: Show, built: Path) -> None:
    text = show(built).get("/documents?words=another+end")
    assert f"<mark>{NEAR[-11:]}</mark></p>" in text
    assert "… " in text
    assert NEAR[:20] not in text


def test_documents_come_twenty_at_a_time(show: Show, pristine: Path, built: Path) -> None:
    client = show(pristine)
    assert client.get("/documents").count("<article>") == 8
    assert client.get("/documents?source=wudao").count("<article>") == 6
    assert client.get("/documents?source=wudao&split=validation").count("<article>") == 1
    assert client.get("/documents?shard=g0001-3f9c12ab/wudao/00001").count("<article>") == 0
    client = show(built)
    assert client.get("/documents").count("<article>") == 20
    assert client.get("/documents?at=30").count("<article>") < 20
