from collections.abc import Callable

import pytest

from pipelines.report import formats


@pytest.mark.parametrize(
    ("shown", "number", "text"),
    [
        (formats.byte_size, 0, "0 B"),
        (formats.byte_size, 999_990, "1 MB"),
        (formats.byte_size, 1.21e9, "1.21 GB"),
        (formats.amount, 65_790, "65.8 thousand"),
        (formats.amount, 2.17e12, "2.17 trillion"),
        (formats.tick, 100_000, "100k"),
        (formats.short, 0, "0"),
        (formats.short, 0.01234, "0.0123"),
        (formats.short, 0.00001, "1.0e-05"),
        (formats.duration, 0.01, "36 s"),
        (formats.duration, 0.5, "30 min"),
        (formats.duration, 30, "30 h"),
    ],
)
def test_numbers(shown: Callable[[float], str], number: float, text: str) -> None:
    assert shown(number) == text
