import pytest

from pipelines.engine.failure import one_line


def test_a_short_text_is_one_line() -> None:
    assert one_line(ValueError("x\n  is broken\t"), 20) == "x is broken"


def test_without_a_text_the_kind_is_told() -> None:
    assert one_line(KeyError(), 20) == "KeyError"


@pytest.mark.parametrize("characters", [20, 21, 300])
def test_of_a_long_text_start_and_end_are_kept(characters: int) -> None:
    text = "job 7 " + "frame " * 1000 + "x is broken"
    told = one_line(RuntimeError(text), characters)
    assert len(told) == characters
    assert told.startswith("job 7")
    assert " … " in told
    assert told.endswith("x is broken")


def test_a_text_of_the_exact_length_is_whole() -> None:
    assert one_line(ValueError("a" * 20), 20) == "a" * 20
