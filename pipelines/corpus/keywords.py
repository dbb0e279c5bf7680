"""Options as keywords of a call: values of Python, or the texts that the flags take.

So a call has the names, the checks and the messages of the command, and nothing is written twice.
"""

import argparse
import inspect
import os
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields
from datetime import datetime
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

from pipelines.corpus.options import Options
from shards import spelling
from shards.errors import UserError
from shards.flags import default_text, flag_of, help_of
from shards.storage.remote import RemotePath

OptionsType = TypeVar("OptionsType", bound=Options)

_WIDTH = 92

_FLAG = re.compile(r"(?<!\S)--([a-z][a-z-]*[a-z])")


def options_of_keywords(
    options_class: type[OptionsType], values: Mapping[str, Any], *, module: str
) -> OptionsType:
    """Return the options that keywords name.

    Args:
        options_class: The options of a corpus.
        values: By the name of an option: of its type, or the text that its flag takes. None stands
            for the default, a list for several values, a mapping for several NAME=VALUE.
        module: The corpus, for messages.

    Raises:
        UserError: A value is of a kind that the option does not take, or is invalid.
    """
    known = {option_field.name: option_field for option_field in fields(options_class)}
    given = {name: value for name, value in values.items() if value is not None}
    try:
        return options_class(**{name: _value(known[name], given[name]) for name in given})
    except argparse.ArgumentTypeError as error:
        raise UserError(f"{error}. python -m {module} --help lists every flag") from None


def engine_words(values: Mapping[str, Any]) -> list[str]:
    """Return the words of a command line for keywords that are no options, but flags of Beam.

    Raises:
        UserError: A value is of a kind that no flag takes.
    """
    words = []
    for name, value in values.items():
        if value is True:
            words.append(f"--{name}")
        elif value is not False and value is not None:
            words += [f"--{name}={text}" for text in _texts(name, value)]
    return words


def parameters(
    options_class: type[Options], *, without: Sequence[str] = ()
) -> list[inspect.Parameter]:
    """Return the options as the parameters of a call."""
    return [
        inspect.Parameter(
            option_field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None if option_field.default == Path() else option_field.default,
            annotation=_annotation(option_field),
        )
        for option_field in fields(options_class)
        if option_field.name not in without
    ]


def described(options_class: type[Options], *, without: Sequence[str] = ()) -> str:
    """Return the options as the arguments of a docstring: what `--help` says of each."""
    return "\n".join(
        textwrap.fill(
            f"{option_field.name}: {_FLAG.sub(_keyword, help_of(option_field, options_class))}"
            f"{_choices(option_field)}{default_text(option_field)}",
            width=_WIDTH,
            initial_indent="    ",
            subsequent_indent="        ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for option_field in fields(options_class)
        if option_field.name not in without
    )


def _annotation(option_field: "Field[Any]") -> Any:
    if isinstance(option_field.default, tuple):
        return str | list[str]
    return str | Path if isinstance(option_field.default, Path) else option_field.type


def _keyword(flag: re.Match[str]) -> str:
    return flag[1].replace("-", "_")


def _choices(option_field: "Field[Any]") -> str:
    choices = option_field.metadata["flag"].get("choices")
    return f" One of: {', '.join(choices)}." if choices else ""


def _value(option_field: "Field[Any]", value: Any) -> Any:
    """Return a value as its option has it; the default is taken as it is.

    Raises:
        ArgumentTypeError: The flag does not take it.
        UserError: It is of another kind.
    """
    name, default = option_field.name, option_field.default
    if type(value) is type(default) and value == default:
        return default
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise UserError(f"{name}={value!r} is neither True nor False: give one of the two")
        return value
    try:
        return _converted(option_field, value)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{flag_of(name)}{error}") from None


def _converted(option_field: "Field[Any]", value: Any) -> Any:
    """Return what the flag makes of the text of a value, or of its texts."""
    name, flag = option_field.name, option_field.metadata["flag"]
    texts, read = _texts(name, value), flag.get("type", str)
    try:
        if flag.get("action") in ("append", "extend"):
            return tuple(map(read, texts))
        if isinstance(option_field.default, tuple):
            return read(value if isinstance(value, str) else _joined(name, texts))
        if isinstance(value, list | tuple | Mapping):
            raise UserError(f"{name} takes one value, not several: {value!r}")
        chosen = read(texts[0])
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f": {error}") from None
    choices = flag.get("choices") or (chosen,)
    if chosen not in choices:
        raise argparse.ArgumentTypeError(f" {chosen}: {spelling.expected(str(chosen), choices)}")
    return chosen


def _joined(name: str, texts: Sequence[str]) -> str:
    """Return the values of a list as its flag takes them."""
    comma = next((text for text in texts if "," in text), None)
    if comma is not None:
        raise UserError(
            f"{name}: {comma!r} holds a comma, at which {flag_of(name)} parts its values: give "
            "each of them as one of the list"
        )
    return ",".join(texts)


def _texts(name: str, value: Any) -> list[str]:
    """Return a value, or the values of a list or a mapping, as flags have them."""
    if isinstance(value, Mapping):
        return [f"{key}={_text(name, one)}" for key, one in value.items()]
    return [_text(name, one) for one in (value if isinstance(value, list | tuple) else [value])]


def _text(name: str, value: Any) -> str:
    if isinstance(value, str | bool | RemotePath):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(float(value))
    if isinstance(value, Real):
        return str(value)
    if inspect.isfunction(value) or inspect.isclass(value):
        return _reference(name, value)
    raise UserError(
        f"{name} is given a {type(value).__name__}, {value!r:.80}: it takes text, a number or a "
        "path, or what --help says of its flag as text"
    )


def _reference(name: str, value: Any) -> str:
    """Return a function or class as MODULE:NAME, by which other processes find it."""
    if not value.__qualname__.isidentifier():
        raise UserError(
            f"{name}: {value.__qualname__} has no name in the module {value.__module__} by which "
            "worker processes could find it: define it with def or class, at the top of a module"
        )
    return f"{value.__module__}:{value.__qualname__}"
