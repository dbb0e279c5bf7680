"""Reads JSON files that people write: DeepSpeed settings, model shapes, items and prompts."""

import json
import re
import reprlib
from pathlib import Path
from typing import Any

from shards.errors import UserError

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""The escape of a surrogate, which JSON allows without its other half."""


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; the caller checks for NaN and infinite numbers.

    Raises:
        UserError: the file cannot be read, is not a JSON object, repeats a key, or contains a lone
            surrogate.
    """
    try:
        content = parse(path.read_bytes())
    except RecursionError as error:
        raise UserError(f"{path} is nested too deeply: correct it there.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise UserError(f"{path} is not valid JSON ({error}): correct it there.") from error
    if not isinstance(content, dict):
        raise UserError(f"{path} is not a JSON object: expected keys and values in {{…}}.")
    return content


def parse(text: str | bytes) -> Any:
    r"""Return the value of a JSON text.

    Raises:
        ValueError: the text is not valid JSON, repeats a key, or contains a lone surrogate
            ("\ud800"), which neither UTF-8 nor a tokenizer can represent.
        RecursionError: the text is nested too deeply.
    """
    content = json.loads(text, object_pairs_hook=_without_repeats)
    if isinstance(text, bytes) or _HALF.search(text):
        _check_halves(content)
    return content


def _check_halves(content: Any) -> None:
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise ValueError(
            f"{half} in it is half a character; write both halves, or U+FFFD"
        ) from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dict.

    Raises:
        ValueError: a key is repeated; Python would use the last value.
    """
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        values = ", ".join(reprlib.repr(value) for name, value in pairs if name == repeated)
        raise ValueError(f"the key {reprlib.repr(repeated)} is there twice, with {values}")
    return content


def is_file(path: Path) -> bool:
    """Return whether a path is a file; any text is allowed, even if it is too long for a name."""
    try:
        return path.is_file()
    except OSError:  # such as a name that is too long
        return False
