import pytest

from shards.storage.address import error_text


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError("No\n  way."), "No way"),
        (OSError(), "OSError"),
        (OSError("x" * 1000), "x" * 300 + "..."),
    ],
)
def test_a_library_message_becomes_one_short_line(error: Exception, expected: str) -> None:
    assert error_text(error) == expected
