import argparse
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shards.commands.flags import (
    count,
    fraction,
    moment,
    names,
    positive,
    seconds,
)


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (fraction, "0.05", 0.05),
        (fraction, "5%", 0.05),
        (fraction, "0", 0.0),
        (fraction, "1", 1.0),
        (fraction, "100%", 1.0),
        (count, "0", 0),
        (count, "1_000_000", 1_000_000),
        (count, "3k", 3_000),
        (count, "1B", 1_000_000_000),
        (count, "2T", 2 * 10**12),
        *((count, text, 100_000) for text in ("100K", "100kB", "100KB")),
        *((count, text, 1 << 27) for text in ("128MiB", "131072KiB")),
        (count, "3GB", 3 * 10**9),
        (seconds, "1.5h", 5400),
        (seconds, "2d", 172_800),
        (moment, "2026-12-31T06:00:00+08:00", datetime(2026, 12, 30, 22, tzinfo=UTC)),
        (positive, "1", 1),
        (names, " zh , en,, zh", ("zh", "en")),
        (names, "", ()),
    ],
)
def test_values_are_read_as_people_write_them(
    read: Callable[[str], Any], text: str, value: Any
) -> None:
    assert read(text) == value


def test_a_moment_may_be_a_time_from_now() -> None:
    before = datetime.now(UTC)
    found = moment("15m")
    assert timedelta(minutes=15) <= found - before < timedelta(minutes=16)


@pytest.mark.parametrize("read", [count, positive])
@pytest.mark.parametrize("text", ["", "a", "1.5M", "%", "k", "1kk", "-1", "-2k", "1__0"])
def test_no_whole_numbers(read: Callable[[str], int], text: str) -> None:
    with pytest.raises(
        argparse.ArgumentTypeError, match=f"'{text}' is not a whole number of at least 0"
    ):
        read(text)
