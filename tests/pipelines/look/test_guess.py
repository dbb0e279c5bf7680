from collections.abc import Mapping
from typing import Any

import pytest

from pipelines.corpus.recipe import CORPORA
from pipelines.look.guess import Guess, guesses
from pipelines.readers.fields import fields_of, text_field
from pipelines.readers.record import Record
from tests.pipelines.look.shapes import CHINESE, ENGLISH, FORMS, SHAPES


def guessed(*values: Mapping[str, Any], form: str = "jsonl", path: str = "/data") -> list[Guess]:
    records = [Record(0, 1, value, b"") for value in values]
    name = text_field(fields_of(records))
    return guesses(records, form=form, text_field=name, path=path)


def test_each_corpus_has_a_shape() -> None:
    assert SHAPES.keys() == {*CORPORA}


@pytest.mark.parametrize("corpus", sorted({*CORPORA} - {"openwebtext"}))
def test_records_of_each_corpus(corpus: str) -> None:
    best = guessed(SHAPES[corpus], SHAPES[corpus], form=FORMS.get(corpus, "jsonl"))[0]
    assert (best.corpus, best.read, best.tried) == (corpus, 2, 2)


def test_a_path_tells_openwebtext_from_any_text() -> None:
    record = SHAPES["openwebtext"]
    assert guessed(record)[0].corpus == "text"
    assert guessed(record, path="/data/OpenWebText/a")[0].corpus == "openwebtext"
    assert guessed(record, path="/data/open-web-text")[0].corpus == "openwebtext"
    assert guessed(SHAPES["text"], path="/data/wudao")[0].corpus == "text", "it cannot be read so"


def test_how_fields_are_used() -> None:
    best = guessed(SHAPES["wudao"], form="json")[0]
    assert best.shaping == ("title", "content")
    assert best.kept == ("uniqueKey", "dataType")
    assert best.texts == (f"题目 {CHINESE}",)


def test_a_book_of_titles_and_contents_is_read_as_wudao() -> None:
    record = {"title": "题目", "content": CHINESE}
    assert guessed(record, form="json")[0].corpus == "wudao"
    assert guessed(record)[0].corpus == "baike", "WuDao is arrays"


def test_the_field_of_the_text_is_that_of_the_records() -> None:
    (best,) = guessed(SHAPES["text"])
    assert best.options.text_field == "body"  # type: ignore[attr-defined]
    assert guessed({"a": 1, "b": "https://a.org"}) == []


def test_reasons_are_counted() -> None:
    bad = {"text": ENGLISH, "meta": {}}
    best = guessed(*[SHAPES["pile"]] * 3, bad)[0]
    assert (best.corpus, best.read, dict(best.rejected)) == ("text", 4, {})
    pile = next(guess for guess in guessed(*[SHAPES["pile"]] * 3, bad) if guess.corpus == "pile")
    assert (pile.read, dict(pile.rejected)) == (3, {"missing-field": 1})
    short = {"title": "题目", "content": "短"}
    wudao = guessed(*[SHAPES["wudao"]] * 3, short, form="json")[0]
    assert (wudao.read, dict(wudao.dropped)) == (4, {"too-short": 1})
