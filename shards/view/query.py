"""Parses and checks the values in the address of a request."""

import math
from collections.abc import Collection
from urllib.parse import parse_qsl, urlsplit

MAX_CHARACTERS = 8192
"""The maximum number of characters of an address."""

_MAX_VALUES = 32
_MAX_DIGITS = 18


class BadQuery(Exception):
    """The address contains an invalid value; the message is a sentence for the user."""


class Query:
    """The values of an address, by name."""

    def __init__(self, target: str) -> None:
        """Parse the address of a request.

        Raises:
            BadQuery: The address is too long or is not valid.
        """
        if len(target) > MAX_CHARACTERS:
            raise BadQuery(f"The address has more than {MAX_CHARACTERS:,} characters.")
        try:
            parts = urlsplit(target)
            pairs = parse_qsl(parts.query, errors="strict", max_num_fields=_MAX_VALUES)
        except ValueError as error:
            raise BadQuery("The address is not valid, or is not UTF-8.") from error
        self.page = parts.path.removeprefix("/")
        """The name of the page."""
        self.values = dict(pairs)
        """All values by name; if a name occurs more than once, the last value counts."""

    def text(self, name: str) -> str:
        """Return the value of a name; "" if the address lacks the name."""
        return self.values.get(name, "")

    def choice(self, name: str, choices: Collection[str], default: str = "") -> str:
        """Return a value that must be one of the choices.

        Raises:
            BadQuery: The value is not one of the choices.
        """
        value = self.values.get(name, default) or default
        if value and value not in choices:
            raise BadQuery(f"There is no {name} {_shown(value)}; there are: {_listed(choices)}.")
        return value

    def number(self, name: str, default: int = 0, *, below: int | None = None) -> int:
        """Return a whole number of at least 0.

        Raises:
            BadQuery: The value is not such a number, or is not below the given limit.
        """
        value = self.text(name).strip().replace(",", "")
        if not value:
            return default
        most_digits = max(_MAX_DIGITS, len(str(below or 0)))
        if not (value.isascii() and value.isdigit() and len(value) <= most_digits):
            raise BadQuery(f"{name} is {_shown(value)}: give a whole number of at least 0.")
        if below is not None and int(value) >= below:
            raise BadQuery(
                f"There is no {name} {int(value):,}: there are {below:,}, counted from 0."
            )
        return int(value)

    def measure(self, name: str) -> float | None:
        """Return a number; None if the address lacks the name.

        Raises:
            BadQuery: The value is not a number.
        """
        value = self.text(name).strip()
        if not value:
            return None
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise BadQuery(f"{name} is {_shown(value)}: give a number, as in 0.25.")
        return number


def _listed(choices: Collection[str]) -> str:
    most = 20
    names = ", ".join(list(choices)[:most])
    return f"{names} …" if len(choices) > most else names


def _shown(value: str) -> str:
    most = 100
    return f"“{value[:most]}…”" if len(value) > most else f"“{value}”"
