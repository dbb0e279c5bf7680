"""A tokenizer model as read from its file, whichever library reads it."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.tokenizers.command_tokens import CommandTokens
from shards.errors import UserError

MAX_HOLES = 1 << 20
"""Ids without a piece that a vocabulary may have: a place is kept for each."""

_REASON_CHARACTERS = 200

Encode = Callable[[Sequence[str]], tuple[npt.NDArray[Any], npt.NDArray[np.int64]]]
"""From texts to all their ids, in one array of any integer type, and how many each text has."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenModel:
    """A vocabulary, and the function that encodes texts with it."""

    encode: Encode
    library: str
    """The library that encodes and its version, such as "tiktoken 0.12.0"."""
    pieces: Sequence[bytes]
    """The bytes of each of the model's ids: the name if it is special, nothing for a hole."""
    special: frozenset[int]
    """Those of the model's ids that are not part of a text."""
    unknown: int | None
    """The id for text the model cannot spell; None: it can spell everything."""
    commands: CommandTokens
    content: bytes
    """The input of fingerprints, on which the ids depend: the bytes of the model file."""
    unused_end: str = ""
    """The piece that ends a text for the model, where another token ends documents here."""
    transformers_json: Callable[[], str | None] | None = None
    """Writes it as a `tokenizer.json`; None, there or here: it cannot be written as one."""


def flatten(parts: Sequence[npt.NDArray[Any]]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the arrays end to end, and their lengths."""
    lengths = np.fromiter(map(len, parts), np.int64, len(parts))
    return (np.concatenate(parts) if parts else np.empty(0, np.int32)), lengths


def count_ids(name: object, ids: Iterable[int]) -> int:
    """Return one more than the highest of a vocabulary's ids.

    Args:
        name: The file, for messages.
        ids: One for each piece, at least one.

    Raises:
        UserError: An id is negative, or far above the number of pieces.
    """
    numbers = [*ids]
    least, most = min(numbers), max(numbers)
    if least < 0 or most >= len(numbers) + MAX_HOLES:
        wrong = least if least < 0 else most
        raise UserError(
            f"{name}: a piece has the id {wrong}, with {len(numbers)} pieces in all: ids count "
            f"from 0, and at most {MAX_HOLES} of them may be unused. The file is damaged: fetch "
            "or make it again."
        )
    return most + 1


def raise_unless_failure(error: BaseException) -> None:
    """Raise again what is not a library's failure: an interrupt, exit or closed generator."""
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit | MemoryError):
        raise error


def reason(error: BaseException) -> str:
    """Return a library's error about a file, in one line that fits into a message."""
    line = " ".join(str(error).split()) or type(error).__name__
    return line if len(line) <= _REASON_CHARACTERS else f"{line[:_REASON_CHARACTERS]}…"
