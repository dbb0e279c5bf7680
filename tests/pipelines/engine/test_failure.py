import pytest

from pipelines.engine.failure import one_line


@pytest.mark.parametrize("characters", [20, 21, 300])
def test_of_a_long_text_start_and_end_are_kept(characters: int) -> None:
    text = "job 7 " + "frame " * 1000 + "x is broken"
    told = one_line(RuntimeError(text), characters)
    assert len(told) == characters
    assert told.startswith("job 7")
    assert " … " in told
    assert told.endswith("x is broken")
