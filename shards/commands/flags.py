"""Flags of all commands: parsers of their values, and dataclass fields that become flags."""

import argparse
import ast
import inspect
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

from shards.storage.address import is_url

WORD = "word"
"""Passed instead of a flag's name if the value is a word that follows no flag."""

REST = "rest"
"""Passed instead of a flag's name if the value is the list of words that belong to no flag."""

_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "B": 3, "T": 4}
_WHOLE = re.compile(r"(?=.{1,40}\Z)([0-9]+(?:_[0-9]+)*)(?:([kKMGT])(i?)B|([kKMGTB]?))")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)([smhd]?)")


def count(text: str) -> int:
    """Parse a whole number of at least 0, which may have a prefix or a unit of bytes.

    k, M, G and T are powers of 1000, even before B ("100M", "100MB"); Ki, Mi, Gi and Ti before B
    are powers of 1024 ("128MiB"). B alone is a billion, the usual unit for tokens ("2B").
    """
    matched = _WHOLE.fullmatch(text)
    if matched is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number of at least 0, such as 300, 20k, 100M or 2G"
        )
    number, unit, binary, prefix = matched.groups()
    base = 1024 if binary else 1000
    return int(int(number) * base ** _POWERS[unit or prefix])


def positive(text: str) -> int:
    """Parse a whole number of at least 1, written as for count()."""
    value = count(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def seconds(text: str) -> float:
    """Return the seconds of a duration that ends in s, m, h or d ("90s", "15m", "1.5h")."""
    matched = _DURATION.fullmatch(text)
    if matched is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a duration, such as 30s, 15m, 1.5h or 2d"
        )
    return float(matched[1]) * _SECONDS[matched[2] or "s"]


def moment(text: str) -> datetime:
    """Parse a time in ISO 8601 (local time if it has no zone), or a duration from now."""
    if _DURATION.fullmatch(text):
        return datetime.now(UTC) + timedelta(seconds=seconds(text))
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a point in time (2026-12-31T06:00) nor a duration (15m, 2h)"
        ) from None


def counts(text: str) -> tuple[int, ...]:
    """Return the whole numbers of a comma-separated list."""
    return tuple(count(part) for part in text.split(","))


def positives(text: str) -> tuple[int, ...]:
    """Return the whole numbers, each at least 1, of a comma-separated list."""
    return tuple(positive(part) for part in text.split(","))


def fraction(text: str) -> float:
    """Parse a number from 0 to 1, written as a fraction or a percentage ("0.05", "5%")."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number from 0 to 1 or a percentage, such as 0.05 or 5%"
        )
    return value


def names(text: str) -> tuple[str, ...]:
    """Return the parts of a comma-separated list, each once, in the order of the list."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def local_path(text: str) -> Path:
    """Return the path of a file or folder on this machine."""
    text = text.removeprefix("file://")
    if is_url(text):
        raise argparse.ArgumentTypeError(f"{text} is a URL; give a path on this machine")
    return Path(text)


@dataclass(frozen=True, eq=False)
class MutuallyExclusive:
    """Flags and words that exclude each other on a command line."""

    required: bool = False
    """Whether a command line must have one of these flags or words."""


def option(
    default: Any,
    help: str = "",
    *,
    group: str = "",
    exclusive: MutuallyExclusive | None = None,
    flag: str = "",
    metadata: Mapping[str, Any] = MappingProxyType({}),
    **argument: Any,
) -> Any:
    """Return a dataclass field that `shards.commands.command.add_flags` turns into a flag.

    Args:
        default: The default value; dataclasses.MISSING if there is none. False makes a flag that
            takes no value. `--help` calls a number that counts something N.
        help: One or two sentences for `--help`, with the unit; if "", the docstring of the field.
        group: The title in `--help` above this flag and those after it; if "", the previous
            field's title.
        exclusive: The group of mutually exclusive flags that the flag belongs to.
        flag: The flag, if it differs from the name of the field; WORD or REST if there is no flag.
        metadata: Further metadata of the field.
        argument: Further arguments of argparse's add_argument.
    """
    if default is False:
        argument = {"action": "store_true", **argument}
    if argument.get("type") in (count, positive, positives):
        argument = {"metavar": "N", **argument}
    about = {"help": help, "group": group, "exclusive": exclusive, "named": flag}
    return field(default=default, metadata={**about, "flag": argument, **metadata})


def same_option(
    options_class: type[Any],
    name: str,
    *,
    default: Any = MISSING,
    group: str = "",
    metadata: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Return a dataclass field that becomes the same flag as a field of another dataclass.

    Args:
        options_class: The other dataclass.
        name: The name of the field in both dataclasses.
        default: The default here; if dataclasses.MISSING, the default of the other field.
        group: The same as for `option`; the other field's group is ignored.
        metadata: Metadata added to that of the other field.
    """
    (other,) = (other for other in fields(options_class) if other.name == name)
    default = other.default if default is MISSING else default
    help_text = help_of(other, options_class)
    about = {**other.metadata, **metadata, "help": help_text, "group": group}
    return field(default=default, metadata=about)


def help_of(option_field: "Field[Any]", options_class: type[Any]) -> str:
    """Return the help of an option: the text passed to `option` or the docstring of the field."""
    text: str = option_field.metadata["help"]
    return text or _texts_below(options_class).get(option_field.name, "")  # type: ignore[arg-type]  # a class


@cache
def _texts_below(options_class: type[Any]) -> Mapping[str, str]:
    """Return the docstring below each field of a dataclass, inherited fields included."""
    texts: dict[str, str] = {}
    for one in filter(is_dataclass, reversed(options_class.__mro__)):
        for above, below in pairwise(_classes(one.__module__).get(one.__name__, ())):
            match above, below:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                    texts[name] = " ".join(text.split())
    return texts


@cache
def _classes(module: str) -> Mapping[str, list[ast.stmt]]:
    """Return the statements of each class of a module; {} if the module has no file."""
    try:
        source = inspect.getsource(sys.modules[module])
    except (KeyError, OSError, TypeError):
        return {}
    return {
        each.name: each.body for each in ast.parse(source).body if isinstance(each, ast.ClassDef)
    }


def flag_of(name: str) -> str:
    """Return the flag that belongs to the name of a field."""
    return f"--{name.replace('_', '-')}"


def options_of(options_class: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Pick the values of a dataclass's fields from parsed flags; lists become tuples."""
    given = {
        field.name: values[field.name] for field in fields(options_class) if field.name in values
    }
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
    }


def non_defaults(options: Any) -> list[str]:
    """Return the names of the options that differ from their defaults."""
    return [
        field.name for field in fields(options) if getattr(options, field.name) != field.default
    ]


def default_text(option_field: "Field[Any]") -> str:
    """Return the default of an option for its help: " Default: X.", or ""."""
    default = option_field.default
    if default is MISSING or not default or not isinstance(default, int | float | str | tuple):
        return ""
    if option_field.metadata["flag"].get("type") is seconds:
        return f" Default: {default:g}s."
    separator = " " if "nargs" in option_field.metadata["flag"] else ","
    values = default if isinstance(default, tuple) else (default,)
    shown = separator.join(map(_written, values))
    return f" Default: {shown!r}." if shown.isspace() else f" Default: {shown}."


def _written(value: object) -> str:
    """Return a default as a user would write it, such as 128MiB or 100M."""
    if isinstance(value, int) and value:
        for size, unit in ((1 << 20, "MiB"), (10**6, "M")):
            if value % size == 0:
                return f"{value // size}{unit}"
    return str(value)
