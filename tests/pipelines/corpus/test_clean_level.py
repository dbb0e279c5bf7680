"""A document's cleaning level is the one that --clean gives its input, else its corpus's."""

import pytest

from pipelines.corpus.clean_level import given_level, level_of
from pipelines.pile import PileOptions, documents


@pytest.mark.parametrize(
    ("subset", "given", "level"),
    [
        ("Github", (), "whitespace"),
        ("StackExchange", (), "whitespace"),
        ("ArXiv", (), "repair"),
        ("Github", ("repair",), "repair"),
        ("Github", ("none", "other=repair"), "none"),
        ("ArXiv", ("none", "x=whitespace"), "whitespace"),
        ("ArXiv", ("other=none",), "repair"),
    ],
)
def test_the_level_of_a_document(subset: str, given: tuple[str, ...], level: str) -> None:
    (document,) = documents({"text": "a", "meta": {"pile_set_name": subset}}, PileOptions())
    assert level_of(document, given_level(given, "x")) == level
