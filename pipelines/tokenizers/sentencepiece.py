"""SentencePiece models: pieces, ids, and a way to keep their control strings out of texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sentencepiece import SentencePieceProcessor

from pipelines.tokenizers.command_tokens import behind_sentencepiece
from pipelines.tokenizers.fast_sentencepiece import agreeing
from pipelines.tokenizers.model import TokenModel, flat, version
from pipelines.tokenizers.protobuf import fields
from pipelines.tokenizers.sentencepiece_model import (
    CONTROL,
    PIECE,
    PIECES,
    SHOWN_SPACE,
    TYPE,
    USER_DEFINED,
)
from shards.errors import UserError


def load_sentencepiece(path: Path, *, fast: bool) -> TokenModel:
    """Return the model of a `.model` file.

    Args:
        path: the file.
        fast: encode part by part where that proves equal to the library, which encodes new parts.

    Raises:
        UserError: the file is no SentencePiece model.
    """
    content = path.read_bytes()
    processor = SentencePieceProcessor()
    try:
        safe = disarmed(content)
        processor.LoadFromSerializedProto(safe)
    except (RuntimeError, ValueError, IndexError) as error:
        raise UserError(
            f"{path} is no SentencePiece model ({error or 'it cannot be parsed'}): give the .model "
            "file that spm_train or python -m pipelines.train_tokenizer wrote."
        ) from error

    def encode(texts: Sequence[str]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        return flat([processor.EncodeAsNumpy(text) for text in texts])

    ids = range(len(processor))
    return TokenModel(
        encode=(agreeing(safe, encode) if fast else None) or encode,
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
    for field, start, end in fields(model, 0, len(model)):
        if field == PIECES:
            _disarm(changed, model, start, end)
    return bytes(changed)


def _disarm(changed: bytearray, model: bytes, start: int, end: int) -> None:
    parts = {field: span for field, *span in fields(model, start, end)}
    if PIECE not in parts or TYPE not in parts:
        return
    symbol = model[slice(*parts[PIECE])].decode(errors="replace").replace(SHOWN_SPACE, " ")
    at = parts[TYPE][0]
    if model[at] == USER_DEFINED and symbol.strip():
        changed[at] = CONTROL


def _piece_bytes(processor: SentencePieceProcessor, i: int) -> bytes:
    piece: str = processor.IdToPiece(i)
    if processor.IsByte(i):
        # Byte pieces are written <0x0A>.
        return bytes([int(piece[1:-1], 16)])
    return piece.replace(SHOWN_SPACE, " ").encode()
