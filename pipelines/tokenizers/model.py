"""A tokenizer model as read from its file, whichever library reads it."""

import dataclasses
import importlib.metadata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.tokenizers.command_tokens import CommandTokens

Encode = Callable[[Sequence[str]], tuple[npt.NDArray[Any], npt.NDArray[np.int64]]]
"""From texts to all their ids, in one array of any integer type, and how many each text has."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenModel:
    """A vocabulary, and the function that encodes texts with it."""

    encode: Encode
    engine: str
    """The library that encodes and its version, such as "tiktoken 0.12.0"."""
    pieces: Sequence[bytes]
    """The bytes of each of the model's ids: the name if it is special, nothing for a hole."""
    special: frozenset[int]
    """Those of the model's ids that are no part of a text."""
    unknown: int | None
    """The id for what the model cannot spell."""
    commands: CommandTokens
    content: bytes
    """What decides the ids, for fingerprints: the bytes of the model file."""


def flatten(parts: Sequence[npt.NDArray[Any]]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the arrays end to end, and their lengths."""
    lengths = np.fromiter(map(len, parts), np.int64, len(parts))
    return (np.concatenate(parts) if parts else np.empty(0, np.int32)), lengths


def version(distribution: str) -> str:
    """Return a library's name and version."""
    return f"{distribution} {importlib.metadata.version(distribution)}"
