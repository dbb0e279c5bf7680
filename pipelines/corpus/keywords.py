"""Turns the keywords of a call into options, by parsing the equivalent command line.

shard_tokens=1e8 ─▶ --shard-tokens=100000000        languages=["zh", "en"] ─▶ --languages=zh,en
flink_master="HOST" ─▶ --flink_master=HOST          input={"a": PATH} ─▶ --input=a=PATH
"""

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from datetime import datetime
from numbers import Real
from typing import Any, TypeVar

from pipelines.corpus.options import Options
from shards.commands.flags import flag_of
from shards.errors import UserError
from shards.storage.remote import RemotePath

OptionsType = TypeVar("OptionsType", bound=Options)


def options_of_call(
    options_class: type[OptionsType],
    values: Mapping[str, Any],
    *,
    module: str,
    runner_flags: Sequence[str] = (),
) -> OptionsType:
    """Return the options that the keywords of a call set.

    Args:
        options_class: The class of the corpus's options.
        values: The values, by the name of an option or of a flag of Beam. A value has the type of
            the option, or is the text that its flag takes. None means the default; a list stands
            for several values, and a mapping stands for several NAME=VALUE.
        module: The module of the corpus, for messages.
        runner_flags: Flags that only Beam's runner knows.

    Raises:
        UserError: An option does not exist, or a value is not valid.
    """
    known = {option_field.name: option_field for option_field in fields(options_class)}
    words = [word for name, value in values.items() for word in _words(name, value, known)]
    if runner_flags:
        words += ["--", *runner_flags]
    return options_class.parse(words, f"python -m {module}", place='into runner_flags=["--…"]')


def _words(name: str, value: Any, known: Mapping[str, "Field[Any]"]) -> Iterator[str]:
    """Yield the words of a command line that set a value; no words if the value is the default."""
    default = known[name].default if name in known else MISSING
    if value is None or (type(value) is type(default) and value == default):
        return
    flag = flag_of(name) if name in known else f"--{name}"
    is_switch = isinstance(default, bool) or default is MISSING
    if is_switch and isinstance(value, bool):
        yield from [flag] if value else []
        return
    if isinstance(default, bool):
        raise UserError(f"{name}={value!r} is neither True nor False")
    texts = _texts(name, value)
    if name not in known or known[name].metadata["flag"].get("action"):
        yield from (f"{flag}={text}" for text in texts)
    elif isinstance(default, tuple):
        yield f"{flag}={value if isinstance(value, str) else _joined(name, texts)}"
    elif isinstance(value, list | tuple | Mapping):
        raise UserError(f"{name} takes one value, not several: {value!r}")
    else:
        yield f"{flag}={texts[0]}"


def _joined(name: str, texts: Sequence[str]) -> str:
    """Return several values as the text that their flag takes."""
    comma = next((text for text in texts if "," in text), None)
    if comma is not None:
        raise UserError(
            f"{name}: {comma!r} contains a comma, which separates the values of {flag_of(name)}: "
            "give each value as an item of the list"
        )
    return ",".join(texts)


def _texts(name: str, value: Any) -> list[str]:
    """Return a value, or each value of a list or mapping, as text for a flag."""
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
        "path, or the text that --help describes for its flag"
    )


def _reference(name: str, value: Any) -> str:
    """Return MODULE:NAME for a function or class, so that other processes can import it."""
    if not value.__qualname__.isidentifier():
        raise UserError(
            f"{name}: worker processes cannot import {value.__qualname__} from the module "
            f"{value.__module__}: define it with def or class, at the top level of a module"
        )
    return f"{value.__module__}:{value.__qualname__}"
