from collections.abc import Callable

import pytest

from pipelines.report import formats


@pytest.mark.parametrize(
    ("shown", "number", "text"),
    [
        (formats.whole, 1234567, "1,234,567"),
        (formats.byte_size, 0, "0 B"),
        (formats.byte_size, 999, "999 B"),
        (formats.byte_size, 310_346, "310 kB"),
        (formats.byte_size, 999_990, "1 MB"),
        (formats.byte_size, 1.21e9, "1.21 GB"),
        (formats.byte_size, 1e14, "100 TB"),
        (formats.amount, 65_790, "65.8 thousand"),
        (formats.amount, 2.17e12, "2.17 trillion"),
        (formats.amount, 12, "12"),
        (formats.tick, 0.5, "0.5"),
        (formats.tick, 100_000, "100k"),
        (formats.short, 0, "0"),
        (formats.short, 0.01234, "0.0123"),
        (formats.short, 12.345, "12.3"),
        (formats.short, 123456.7, "123,457"),
        (formats.short, 0.00001, "1.0e-05"),
        (formats.duration, 0.01, "36 s"),
        (formats.duration, 0.5, "30 min"),
        (formats.duration, 30, "30 h"),
        (formats.duration, 168_683, "7,028 days"),
    ],
)
def test_numbers(shown: Callable[[float], str], number: float, text: str) -> None:
    assert shown(number) == text


@pytest.mark.parametrize(
    ("part", "of", "text"),
    [
        (509, 531, "95.9 %"),
        (1, 531, "0.19 %"),
        (1, 10**9, "< 0.01 %"),
        (0, 7, "0.00 %"),
        (7, 7, "100.0 %"),
        (0, 0, "–"),
    ],
)
def test_percentages(part: float, of: float, text: str) -> None:
    assert formats.percent(part, of) == text
