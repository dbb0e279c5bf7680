from collections.abc import Callable

import pytest

from pipelines.report import figures


@pytest.mark.parametrize(
    ("shown", "number", "text"),
    [
        (figures.whole, 1234567, "1,234,567"),
        (figures.size, 0, "0 B"),
        (figures.size, 999, "999 B"),
        (figures.size, 310_346, "310 kB"),
        (figures.size, 999_990, "1 MB"),
        (figures.size, 1.21e9, "1.21 GB"),
        (figures.size, 1e14, "100 TB"),
        (figures.amount, 65_790, "65.8 thousand"),
        (figures.amount, 2.17e12, "2.17 trillion"),
        (figures.amount, 12, "12"),
        (figures.tick, 0.5, "0.5"),
        (figures.tick, 100_000, "100k"),
        (figures.short, 0, "0"),
        (figures.short, 0.01234, "0.0123"),
        (figures.short, 12.345, "12.3"),
        (figures.short, 123456.7, "123,457"),
        (figures.short, 0.00001, "1.0e-05"),
        (figures.hours, 0.01, "36 s"),
        (figures.hours, 0.5, "30 min"),
        (figures.hours, 30, "30 h"),
        (figures.hours, 168_683, "7,028 days"),
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
def test_shares(part: float, of: float, text: str) -> None:
    assert figures.share(part, of) == text
