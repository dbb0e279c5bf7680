"""Formats figures and texts for the page."""

from collections.abc import Mapping, Sequence
from typing import Any

_SIZES = (" B", " kB", " MB", " GB", " TB", " PB", " EB")
_COUNTS = ("", " thousand", " million", " billion", " trillion", " quadrillion")
_TEN_THOUSAND, _CHINESE_COUNTS = 10_000, ("", " 万", " 亿", " 万亿")
_DUMP_BYTES, _DUMP_WIDTH = 64, 16


def whole(number: float) -> str:
    """Return a number rounded to a whole number, such as 1,234."""
    return f"{round(number):,}"


def short(number: float) -> str:
    """Return a number with three digits, or all digits before the point: 0.0123 or 1,234."""
    if abs(number) >= 100 or number == 0:  # noqa: PLR2004  three figures before the point
        return f"{number:,.0f}"
    return f"{number:.3g}" if abs(number) >= 0.001 else f"{number:.1e}"  # noqa: PLR2004  else zeros


def byte_size(num_bytes: float) -> str:
    """Return a number of bytes with a decimal unit, such as 310 kB or 1.21 GB."""
    return _scaled(num_bytes, _SIZES)


def amount(number: float) -> str:
    """Return a number with three digits and a word, such as 65.8 thousand or 1.2 trillion."""
    return _scaled(number, _COUNTS)


def chinese_amount(number: float) -> str:
    """Return a number with three digits and a Chinese unit, such as 6.58 万 or 1.2 万亿."""
    power = 0
    while round(number, 1) >= _TEN_THOUSAND and power < len(_CHINESE_COUNTS) - 1:
        number, power = number / _TEN_THOUSAND, power + 1
    return f"{short(number)}{_CHINESE_COUNTS[power]}"


def tick(number: float) -> str:
    """Return a short form of a number for a tick of an axis, such as 0.5, 20, 1k or 3M."""
    return _scaled(number, ("", "k", "M", "G", "T", "P")).removesuffix(".0")


def _scaled(number: float, units: Sequence[str]) -> str:
    power = 0
    while round(number, 1) >= 1000 and power < len(units) - 1:  # noqa: PLR2004  each unit is 1000
        number, power = number / 1000, power + 1
    return f"{short(number)}{units[power]}"


def percent(part: float, of: float) -> str:
    """Return a share in per cent, such as 95.9 % or < 0.01 %; a dash if the whole is 0."""
    if not of:
        return "–"
    percent = 100 * part / of
    if 0 < percent < 0.01:  # noqa: PLR2004  two places are shown
        return "< 0.01 %"
    return f"{percent:.2f} %" if percent < 10 else f"{percent:.1f} %"  # noqa: PLR2004  three figures


def duration(hours: float) -> str:
    """Return a number of hours with a suitable unit, such as 34 s, 12 min, 5.2 h or 41 days."""
    for unit, in_hours, least in (("days", 24, 48), ("h", 1, 1), ("min", 1 / 60, 1 / 60)):
        if hours >= least:
            return f"{short(hours / in_hours)} {unit}"
    return f"{short(hours * 3600)} s"


def option_text(value: Any) -> str:
    """Return the value of an option on one line."""
    if isinstance(value, Mapping):
        return "; ".join(f"{name} {option_text(value[name])}" for name in sorted(value))
    if isinstance(value, list):
        return ", ".join(map(option_text, value)) or "(none)"
    if isinstance(value, str) and value != value.strip():
        return f'"{value}"'
    return str(value) if value != "" else "(none)"


def hex_dump(hexadecimal: str) -> str:
    """Return a dump of hexadecimal bytes, 16 per line, followed by the bytes as text."""
    raw = bytes.fromhex(hexadecimal)
    starts = range(0, min(len(raw), _DUMP_BYTES), _DUMP_WIDTH)
    lines = [raw[start : start + _DUMP_WIDTH].hex(" ") for start in starts]
    return "\n".join([*lines, "", raw.decode(errors="replace")]) if raw else ""
