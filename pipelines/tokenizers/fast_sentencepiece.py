"""SentencePiece's ids several times as fast, by a native loop over parts of texts.

The tables of a model (piece_tables.py) and the loop (piece_kernels.py) replace the library for
texts that can be cut; the library encodes the others, and all where the two disagree on a check.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.compiled import proven
from pipelines.tokenizers.agreement import CHECK_TEXTS, first_difference
from pipelines.tokenizers.model import Encode, flatten, version
from pipelines.tokenizers.sentencepiece_model import (
    SHOWN_SPACE,
    CuttableModel,
    read_cuttable_model,
)

CHUNK_CHARS = 1 << 18
"""Characters of texts worked on at a time: few enough for the CPU's caches."""

# How many pieces a text of the check has.
_CHECK_PIECES = 200

_Ids = tuple[npt.NDArray[Any], npt.NDArray[np.int64]]


def piece_encoder(content: bytes, reference: Encode) -> Encode | None:
    """Return the compiled encoder of a serialized model; None if there is none or it disagrees.

    Args:
        content: the model.
        reference: the library's encoder of it.
    """
    texts = [*CHECK_TEXTS]

    def build() -> Encode | None:
        model = read_cuttable_model(content)
        if model is None:
            return None
        texts.extend(_piece_texts(model))
        return compiled_encoder(model, reference)

    return proven(
        "Compiled code for SentencePiece",
        build,
        lambda encode: first_difference(encode, reference, texts),
        plain=None,
        instead=version("sentencepiece"),
    )


def _piece_texts(model: CuttableModel) -> list[str]:
    """Return texts made of all pieces, next to other pieces than in the vocabulary."""
    texts = [piece.text.replace(SHOWN_SPACE, " ") for piece in model.pieces]
    count = -(-len(texts) // _CHECK_PIECES)
    return ["".join(texts[first::count]) for first in range(count)]


def compiled_encoder(model: CuttableModel, reference: Encode) -> Encode:
    """Return an encoder that gives the library's ids.

    Args:
        model: the model.
        reference: the library's encoder of the model, for texts that cannot be cut.

    Raises:
        ValueError: the model has too many pieces.
    """
    from pipelines.tokenizers.piece_kernels import encode_texts  # noqa: PLC0415  imports numba
    from pipelines.tokenizers.piece_tables import piece_tables  # noqa: PLC0415  the same

    tables = piece_tables(model)

    def encode_group(texts: Sequence[str]) -> _Ids:
        points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
        ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
        # A character seldom makes two ids; where many do, the library takes over.
        ids = np.empty(2 * (len(points) + len(texts)), np.int32)
        lengths = np.empty(len(texts), np.int64)
        used = encode_texts(points, ends, tables, ids, lengths)
        return _completed(ids[:used], lengths, texts, reference)

    def encode(texts: Sequence[str]) -> _Ids:
        encoded = [encode_group(group) for group in _groups(texts)]
        tokens, lengths = zip(*encoded, strict=True) if encoded else ((), ())
        return flatten(tokens)[0], flatten(lengths)[0].astype(np.int64, copy=False)

    return encode


def _groups(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts in groups of at least `CHUNK_CHARS` characters, save for the last."""
    group: list[str] = []
    chars = 0
    for text in texts:
        group.append(text)
        chars += len(text)
        if chars >= CHUNK_CHARS:
            yield group
            group, chars = [], 0
    if group:
        yield group


def _completed(
    ids: npt.NDArray[np.int32],
    lengths: npt.NDArray[np.int64],
    texts: Sequence[str],
    reference: Encode,
) -> _Ids:
    """Return ids and lengths with those of the texts whose length is -1, encoded by `reference`."""
    left = np.flatnonzero(lengths < 0)
    if not len(left):
        return ids, lengths
    own, own_lengths = reference([texts[index] for index in left.tolist()])
    lengths[left] = 0
    places = np.repeat(np.cumsum(lengths)[left], own_lengths)
    lengths[left] = own_lengths
    return np.insert(ids, places, own), lengths
