"""SentencePiece models: pieces, ids, and a way to keep their control strings out of texts."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sentencepiece import SentencePieceProcessor

from pipelines.tokenizers.command_tokens import behind_sentencepiece
from pipelines.tokenizers.model import TokenModel, flat, version
from shards.errors import UserError

_SPACE = "\u2581"
# Of sentencepiece_model.proto: ModelProto.pieces = 1; SentencePiece.piece = 1, .type = 3.
_PIECES, _PIECE, _TYPE = 1, 1, 3
_CONTROL, _USER_DEFINED = 3, 4
# Wire types of protocol buffers.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def load_sentencepiece(path: Path) -> TokenModel:
    """Return the model of a `.model` file.

    Raises:
        UserError: the file is no SentencePiece model.
    """
    content = path.read_bytes()
    processor = SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(disarmed(content))
    except (RuntimeError, ValueError, IndexError) as error:
        raise UserError(
            f"{path} is no SentencePiece model ({error or 'it cannot be parsed'}): give the .model "
            "file that spm_train or python -m pipelines.train_tokenizer wrote."
        ) from error

    def encode(texts: Sequence[str]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        return flat([processor.EncodeAsNumpy(text) for text in texts])

    ids = range(len(processor))
    return TokenModel(
        encode=encode,
        engine=version("sentencepiece"),
        pieces=[_piece_bytes(processor, i) for i in ids],
        special=frozenset(i for i in ids if processor.IsControl(i) or processor.IsUnknown(i)),
        unknown=processor.unk_id(),
        commands=behind_sentencepiece(len(processor)),
        content=content,
    )


def disarmed(model: bytes) -> bytes:
    """Return the model with user-defined symbols that show made control symbols.

    A text that holds the string of a user-defined symbol would get its id; control symbols are
    never matched. White space, such as a line break that a model keeps, stays user-defined:
    it is text. No id changes.
    """
    changed = bytearray(model)
    for field, start, end in _fields(model, 0, len(model)):
        if field == _PIECES:
            _disarm(changed, model, start, end)
    return bytes(changed)


def _disarm(changed: bytearray, model: bytes, start: int, end: int) -> None:
    parts = {field: span for field, *span in _fields(model, start, end)}
    if _PIECE not in parts or _TYPE not in parts:
        return
    symbol = model[slice(*parts[_PIECE])].decode(errors="replace").replace(_SPACE, " ")
    at = parts[_TYPE][0]
    if model[at] == _USER_DEFINED and symbol.strip():
        changed[at] = _CONTROL


def _fields(message: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, start and end of the value of each field of a serialized message.

    Raises:
        ValueError, IndexError: the bytes are no such message.
    """
    position = start
    while position < end:
        key, position = _varint(message, position)
        wire = key & 7
        if wire == _VARINT:
            after = _varint(message, position)[1]
        elif wire == _BYTES:
            length, position = _varint(message, position)
            after = position + length
        elif wire in (_FIXED32, _FIXED64):
            after = position + (4 if wire == _FIXED32 else 8)
        else:
            raise ValueError(f"it has a field of type {wire}")
        if after > end:
            raise ValueError("it ends in the middle of a field")
        yield key >> 3, position, after
        position = after


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """Return a number and where it ends: 7 bits a byte, the lowest first."""
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004  the top bit says that more follows
            return value, position


def _piece_bytes(processor: SentencePieceProcessor, i: int) -> bytes:
    piece: str = processor.IdToPiece(i)
    if processor.IsByte(i):
        # Byte pieces are written <0x0A>.
        return bytes([int(piece[1:-1], 16)])
    return piece.replace(_SPACE, " ").encode()
