"""JSON that people write: settings of DeepSpeed, shapes of models, items, prompts."""

import json
import re
import reprlib
from pathlib import Path
from typing import Any

from shards.errors import UserError

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape of half a character, which JSON may have without its other half."""


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; NaN and infinite numbers are left to the caller.

    Raises:
        UserError: the file cannot be read, holds something else, has a key twice or half a
            character.
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
    r"""Return the value that a JSON text is.

    Raises:
        ValueError: it is none, has a key twice, or a text in it has half a character (a lone
            surrogate, "\ud800"), which no file in UTF-8 and no tokenizer can hold.
        RecursionError: it is nested too deeply.
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
    """Return an object of the file.

    Raises:
        ValueError: it has a key twice; Python would take the second.
    """
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        values = ", ".join(reprlib.repr(value) for name, value in pairs if name == repeated)
        raise ValueError(f"the key {reprlib.repr(repeated)} is there twice, with {values}")
    return content


def is_file(path: Path) -> bool:
    """Return whether there is a file of that name, which may be no possible name at all."""
    try:
        return path.is_file()
    except OSError:  # too long a name, for one
        return False
