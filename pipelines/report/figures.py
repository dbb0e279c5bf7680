"""Figures as a person reads them."""

_SIZES = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_COUNTS = ("", " thousand", " million", " billion", " trillion", " quadrillion")


def whole(number: float) -> str:
    """Return a whole number: 1,234."""
    return f"{round(number):,}"


def size(num_bytes: float) -> str:
    """Return bytes in powers of ten: 310 kB, 1.21 GB."""
    return _scaled(num_bytes, [f" {unit}" for unit in _SIZES])


def amount(number: float) -> str:
    """Return a number to three figures: 65.8 thousand, 1.2 trillion."""
    return _scaled(number, _COUNTS)


def tick(number: float) -> str:
    """Return a number for the narrow place under an axis: 0.5, 20, 1k, 3M."""
    return _scaled(number, ("", "k", "M", "G", "T", "P")).removesuffix(".0")


def _scaled(number: float, units: list[str] | tuple[str, ...]) -> str:
    at = 0
    while round(number, 1) >= 1000 and at < len(units) - 1:  # noqa: PLR2004  each unit is 1000
        number, at = number / 1000, at + 1
    return f"{short(number)}{units[at]}"


def short(number: float) -> str:
    """Return a number to three figures, large ones to all before the point: 0.0123, 65.8, 1,234."""
    if abs(number) >= 100 or number == 0:  # noqa: PLR2004  three figures before the point
        return f"{number:,.0f}"
    return f"{number:.3g}" if abs(number) >= 0.001 else f"{number:.1e}"  # noqa: PLR2004  else zeros


def share(part: float, of: float) -> str:
    """Return a share in per cent, a dash of nothing: 95.9 %, < 0.01 %."""
    if not of:
        return "–"
    percent = 100 * part / of
    if 0 < percent < 0.01:  # noqa: PLR2004  two places are shown
        return "< 0.01 %"
    return f"{percent:.2f} %" if percent < 10 else f"{percent:.1f} %"  # noqa: PLR2004  three figures


def hours(number: float) -> str:
    """Return hours as the unit that suits: 34 s, 12 min, 5.2 h, 41 days."""
    for unit, in_hours in (("days", 24.0), ("h", 1.0), ("min", 1 / 60)):
        least = 2 * in_hours if unit == "days" else in_hours
        if number >= least:
            return f"{short(number / in_hours)} {unit}"
    return f"{short(number * 3600)} s"
