import pytest

from shards.spelling import nearest

MODELS = ("glm-base", "glm-large", "glm-large-chinese", "tiny")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("glm-larg", ["glm-large"]),
        ("GLM_Large", ["glm-large"]),
        ("--tiny", ["tiny"]),
        ("glm-large-chinnese", ["glm-large-chinese"]),
        ("gpt2", []),
        ("", []),
        ("x" * 10_000_000, []),
    ],
)
def test_names_that_may_be_meant(name: str, near: list[str]) -> None:
    assert nearest(name, MODELS) == near


def test_the_likeliest_comes_first_and_unlikely_ones_not_at_all() -> None:
    known = ("max_words", "min_lines", "min_words", "stop_words")
    assert nearest("mn_words", known) == ["min_words", "max_words"]
    assert nearest("mn_words", known, most=1) == ["min_words"]
    assert nearest("mn_words", known, likeness=0.99) == []
    assert nearest("min_word", known) == ["min_words"]
