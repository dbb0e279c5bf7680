import pytest

from pipelines.engine.failure import one_line

LONG = "job 7 " + "frame " * 1000 + "x is broken"


@pytest.mark.parametrize(
    ("error", "start", "end", "size"),
    [
        (ValueError("x\n  is broken\t"), "x is broken", "", 11),
        (KeyError(), "KeyError", "", 8),
        (ValueError("a" * 20), "a" * 20, "", 20),
        (RuntimeError(LONG), "job 7", "x is broken", 20),
    ],
)
def test_an_error_is_one_line_of_which_start_and_end_are_kept(
    error: Exception, start: str, end: str, size: int
) -> None:
    told = one_line(error, 20)
    assert told.startswith(start)
    assert told.endswith(end)
    assert len(told) == size
