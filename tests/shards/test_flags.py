import argparse
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shards.command import Parser, add_flags
from shards.flags import (
    count,
    fraction,
    given,
    moment,
    names,
    option,
    options_of,
    positive,
    seconds,
)


@dataclass(frozen=True, kw_only=True)
class Knobs:
    shards: int = option(0, "Shards per source, at most 5 %.", metavar="N", type=count)
    output_folder: Path | None = option(None, "Where to write.", type=Path)
    languages: tuple[str, ...] = option(("zh", "en"), "To keep.", type=names)
    betas: tuple[float, ...] = option((0.9, 0.95), "Of AdamW.", nargs=2, type=float)
    separator: str = option(" ")
    """Between title
    and text."""
    dry_run: bool = option(False, "List only.", action="store_true")


def knobs(*argv: str) -> Knobs:
    parser = Parser(prog="knobs", argument_default=argparse.SUPPRESS)
    add_flags(parser, Knobs)
    return Knobs(**options_of(Knobs, vars(parser.parse_args(argv))))


def test_fields_become_flags_and_flags_fields() -> None:
    assert knobs() == Knobs()
    assert knobs(
        *("--shards", "2k", "--output-folder", "x", "--languages", "ja", "--betas", "0.8", "0.9"),
        *("--separator", "", "--dry-run"),
    ) == Knobs(
        shards=2000,
        output_folder=Path("x"),
        languages=("ja",),
        betas=(0.8, 0.9),
        separator="",
        dry_run=True,
    )


def test_what_is_given_is_not_at_its_default() -> None:
    assert given(Knobs()) == []
    assert given(knobs("--shards", "0", "--dry-run", "--separator", "")) == ["separator", "dry_run"]


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


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (fraction, "1.5", "'1.5' is not a share: a number from 0 to 1, or 0% to 100%, .*"),
        (fraction, "101%", "'101%' is not a share: a number from 0 to 1, or 0% to 100%, .*"),
        (fraction, "-0.1", "'-0.1' is not a share: a number from 0 to 1, or 0% to 100%, .*"),
        (fraction, "nan", "'nan' is not a share: a number from 0 to 1, or 0% to 100%, .*"),
        (positive, "0", "0 is not at least 1"),
        (positive, "0M", "0M is not at least 1"),
        (seconds, "soon", "'soon' is not a length of time, as in 30s, 15m, 1.5h or 2d"),
        (
            moment,
            "noon",
            "'noon' is neither a point in time .2026-12-31T06:00. nor a time from now .15m, 2h.",
        ),
    ],
)
def test_values_out_of_range_are_refused(
    read: Callable[[str], Any], text: str, message: str
) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"^{message}$"):
        read(text)


def test_a_moment_may_be_a_time_from_now() -> None:
    before = datetime.now(UTC)
    found = moment("15m")
    assert timedelta(minutes=15) <= found - before < timedelta(minutes=16)


@pytest.mark.parametrize("read", [count, positive])
@pytest.mark.parametrize("text", ["", "a", "1.5M", "%", "k", "1kk", "-1", "-2k", "1__0"])
def test_no_whole_numbers(read: Callable[[str], int], text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"'{text}' is not a whole number from 0"):
        read(text)
