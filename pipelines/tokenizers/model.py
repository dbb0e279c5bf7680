"""A tokenizer model as read from its file, independent of the library that reads it."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.tokenizers.command_tokens import CommandTokens
from shards.errors import UserError

MAX_HOLES = 1 << 20
"""The maximum number of ids that have no piece; each takes memory."""

_REASON_CHARACTERS = 200

Encode = Callable[[Sequence[str]], tuple[npt.NDArray[Any], npt.NDArray[np.int64]]]
"""Maps texts to their ids, in one array of any integer type, and the number of ids per text."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenModel:
    """A vocabulary, and the function that encodes texts with it."""

    encode: Encode
    library: str
    """The library that encodes and its version, such as "tiktoken 0.12.0"."""
    pieces: Sequence[bytes]
    """The bytes of each id of the model: the name of a special token; b"" for an unused id."""
    special_ids: frozenset[int]
    """The ids of the model that are never part of a text."""
    unknown: int | None
    """The id for text that the model cannot encode; None if it can encode everything."""
    commands: CommandTokens
    content: bytes
    """The bytes of the model file, on which the ids depend; the input of fingerprints."""
    unused_end: str = ""
    """The model's own end-of-text piece, if another token ends documents; else ""."""
    transformers_json: Callable[[], str | None] | None = None
    """Returns the model as a `tokenizer.json`, or None if this model cannot be one.

    None if no model of this kind can be one.
    """


def flatten(parts: Sequence[npt.NDArray[Any]]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the concatenated arrays, and their lengths."""
    lengths = np.fromiter(map(len, parts), np.int64, len(parts))
    return (np.concatenate(parts) if parts else np.empty(0, np.int32)), lengths


def count_ids(name: object, ids: Iterable[int]) -> int:
    """Return the number of ids of a vocabulary: the highest id plus one.

    Args:
        name: The file, for messages.
        ids: The id of each piece; at least one.

    Raises:
        UserError: An id is negative, or far above the number of pieces.
    """
    numbers = [*ids]
    least, most = min(numbers), max(numbers)
    if least < 0 or most >= len(numbers) + MAX_HOLES:
        wrong = least if least < 0 else most
        raise UserError(
            f"{name}: a piece has the id {wrong}, but there are {len(numbers)} pieces: ids start "
            f"at 0, and at most {MAX_HOLES} may be unused. The file is damaged: fetch it or make "
            "it again."
        )
    return most + 1


def raise_unless_failure(error: BaseException) -> None:
    """Reraise an interrupt, exit or closed generator, which are not failures of a library."""
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit | MemoryError):
        raise error


def reason(error: BaseException) -> str:
    """Return a library's error as one short line for a message."""
    line = " ".join(str(error).split()) or type(error).__name__
    return line if len(line) <= _REASON_CHARACTERS else f"{line[:_REASON_CHARACTERS]}…"
