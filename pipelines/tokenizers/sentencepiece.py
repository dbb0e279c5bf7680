"""SentencePiece models, encoded by Google's library or, faster, by compiled code."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sentencepiece import SentencePieceProcessor

from pipelines.tokenizers.command_tokens import sentencepiece_commands
from pipelines.tokenizers.fast_sentencepiece import piece_encoder
from pipelines.tokenizers.model import TokenModel, flatten, reason, version
from pipelines.tokenizers.sentencepiece_model import SHOWN_SPACE, disarm_symbols
from shards.errors import UserError


def sentencepiece_model(content: bytes, *, name: object, compiled: bool) -> TokenModel:
    """Return the model in a `.model` file.

    Args:
        content: of the file.
        name: of the file, for messages.
        compiled: encode by compiled code if that proves equal to the library.

    Raises:
        UserError: the file is no SentencePiece model.
    """
    processor = SentencePieceProcessor()
    try:
        safe = disarm_symbols(content)
        processor.LoadFromSerializedProto(safe)
        pieces = [_piece_bytes(processor, i) for i in range(len(processor))]
    except (RuntimeError, ValueError, IndexError, struct.error) as error:
        raise UserError(
            f"{name} is no SentencePiece model ({reason(error)}): give the .model file that "
            "spm_train or python -m pipelines.train_tokenizer wrote."
        ) from error

    def encode(texts: Sequence[str]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        return flatten([processor.EncodeAsNumpy(text) for text in texts])

    ids = range(len(pieces))
    fast = piece_encoder(safe, encode) if compiled else None
    return TokenModel(
        encode=fast or encode,
        engine=version("sentencepiece"),
        pieces=pieces,
        special=frozenset(i for i in ids if processor.IsControl(i) or processor.IsUnknown(i)),
        unknown=processor.unk_id(),
        commands=sentencepiece_commands(len(processor)),
        content=content,
    )


def _piece_bytes(processor: SentencePieceProcessor, i: int) -> bytes:
    piece: str = processor.IdToPiece(i)
    if processor.IsByte(i):
        # Byte pieces are written <0x0A>.
        return bytes([int(piece[1:-1], 16)])
    return piece.replace(SHOWN_SPACE, " ").encode()
