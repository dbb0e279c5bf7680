"""Loads SentencePiece models; a fast kernel encodes, or Google's library where the kernel cannot.

The kernel (piece_kernels.py) uses tables of the model (piece_tables.py), and encodes texts that can
be split into parts; the library encodes other texts, and all texts for other kinds of models.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sentencepiece import SentencePieceProcessor

from pipelines.libraries import library_version
from pipelines.tokenizers.command_tokens import sentencepiece_commands
from pipelines.tokenizers.end_of_text import EndOfText
from pipelines.tokenizers.model import Encode, TokenModel, flatten, reason
from pipelines.tokenizers.piece_kernels import MAX_PART, encode_texts
from pipelines.tokenizers.piece_tables import piece_tables
from pipelines.tokenizers.sentencepiece_json import sentencepiece_json
from pipelines.tokenizers.sentencepiece_model import (
    SPACE_SYMBOL,
    SplittableModel,
    hide_user_symbols,
    published_end,
    read_splittable_model,
)
from shards.commands.table import called
from shards.errors import UserError

CHUNK_CHARS = 1 << 18
"""The number of characters to encode at once, which fit into the CPU's caches."""

_Ids = tuple[npt.NDArray[Any], npt.NDArray[np.int64]]


def sentencepiece_model(content: bytes, *, name: object, end: EndOfText, fast: bool) -> TokenModel:
    """Return the model in a `.model` file.

    Args:
        content: The content of the file.
        name: The name of the file, for messages.
        end: The places that may name the token that ends documents.
        fast: Whether to encode with the kernel if possible.

    Raises:
        UserError: The file is not a SentencePiece model.
    """
    processor = SentencePieceProcessor()
    try:
        safe = hide_user_symbols(content)
        processor.LoadFromSerializedProto(safe)
        pieces = [_piece_bytes(processor, i) for i in range(len(processor))]
    except (RuntimeError, ValueError, IndexError, struct.error) as error:
        raise UserError(
            f"{name} is not a SentencePiece model ({reason(error)}): give the .model file that "
            f"spm_train or {called('train-tokenizer')} wrote."
        ) from error

    def encode(texts: Sequence[str]) -> _Ids:
        return flatten([processor.EncodeAsNumpy(text) for text in texts])

    ids = range(len(pieces))
    vocabulary = {processor.IdToPiece(i): i for i in ids}
    asked = end.requested_id(vocabulary, name=name)
    chosen = end.configured_id(vocabulary) if asked is None else asked
    own = {chosen} if chosen is not None else set()
    commands = sentencepiece_commands(len(processor), end_of_text=chosen)
    return TokenModel(
        encode=_fast_encoder(safe, encode) if fast else encode,
        library=library_version("sentencepiece"),
        pieces=pieces,
        special_ids=frozenset(
            i for i in ids if processor.IsControl(i) or processor.IsUnknown(i) or i in own
        ),
        unknown=processor.unk_id(),
        commands=commands,
        content=content,
        unused_end="" if own else published_end(content),
        transformers_json=lambda: sentencepiece_json(safe, commands=commands, encode=encode),
    )


def _piece_bytes(processor: SentencePieceProcessor, i: int) -> bytes:
    piece: str = processor.IdToPiece(i)
    if processor.IsByte(i):
        # The names of byte pieces are like <0x0A>.
        return bytes([int(piece[1:-1], 16)])
    return piece.replace(SPACE_SYMBOL, " ").encode()


def _fast_encoder(content: bytes, reference: Encode) -> Encode:
    """Return the fastest encoder of a serialized model; the library's if texts cannot be split."""
    try:
        model = read_splittable_model(content)
        return compiled_encoder(model, reference) if model else reference
    except (ValueError, IndexError):  # only the library can read it, or it has too many pieces
        return reference


def compiled_encoder(model: SplittableModel, reference: Encode) -> Encode:
    """Return an encoder that gives the library's ids.

    Args:
        model: The model.
        reference: The library's encoder of the model, for texts that cannot be split.

    Raises:
        ValueError: The model has too many pieces.
    """
    tables = piece_tables(model)

    def encode_group(texts: Sequence[str]) -> _Ids:
        points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
        ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
        # A character rarely makes two ids; the library encodes texts in which many do.
        ids = np.empty(2 * (len(points) + len(texts)), np.int32)
        lengths = np.empty(len(texts), np.int64)
        memory = np.empty(len(ids) + 1, np.int32), np.empty(MAX_PART, np.int32)
        used = encode_texts(points, ends, tables, ids, lengths, *memory)
        return _completed(ids[:used], lengths, texts, reference)

    def encode(texts: Sequence[str]) -> _Ids:
        encoded = [encode_group(group) for group in _groups(texts)]
        tokens, lengths = zip(*encoded, strict=True) if encoded else ((), ())
        return flatten(tokens)[0], flatten(lengths)[0].astype(np.int64, copy=False)

    return encode


def _groups(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts in groups of at least `CHUNK_CHARS` characters; the last may have fewer."""
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
    """Return ids and lengths after `reference` has encoded the texts whose length is -1."""
    left = np.flatnonzero(lengths < 0)
    if not len(left):
        return ids, lengths
    own, own_lengths = reference([texts[index] for index in left.tolist()])
    lengths[left] = 0
    places = np.repeat(np.cumsum(lengths)[left], own_lengths)
    lengths[left] = own_lengths
    return np.insert(ids, places, own), lengths
