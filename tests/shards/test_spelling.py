import pytest

from shards.spelling import did_you_mean, expected, nearest

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


def test_what_a_person_reads() -> None:
    assert did_you_mean("mn_words", ("min_words", "max_words")) == (
        "did you mean min_words or max_words?"
    )
    assert did_you_mean("gpt2", MODELS) == ""
    assert expected("tinny", MODELS) == (
        "did you mean tiny? Give one of glm-base, glm-large, glm-large-chinese, tiny"
    )
    assert expected("gpt2", iter(MODELS)) == (
        "give one of glm-base, glm-large, glm-large-chinese, tiny"
    )
