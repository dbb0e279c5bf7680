"""What a SentencePiece model file says, as far as cutting texts into parts needs it."""

import dataclasses
import itertools
from collections.abc import Sequence

from pipelines.tokenizers.charsmap import Rules, rules
from pipelines.tokenizers.protobuf import field, fields, varint

SHOWN_SPACE = "\u2581"
"""How pieces show a space."""
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""The types of pieces."""

# Fields of sentencepiece_model.proto. ModelProto:
PIECES, _TRAINER, _NORMALIZER, _SELF_TEST = 1, 2, 3, 4
# SentencePiece:
PIECE, TYPE = 1, 3
# TrainerSpec:
_MODEL_TYPE, _SUFFIX = 3, 24
_BPE = 2
# NormalizerSpec:
_CHARSMAP, _DUMMY_PREFIX, _REMOVE_EXTRA, _ESCAPE = 2, 3, 4, 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class CuttableModel:
    """A BPE model whose texts can be cut into parts that have ids of their own."""

    content: bytes
    pieces: Sequence[str]
    """What neighbours can be joined to."""
    symbols: Sequence[str]
    """User-defined characters; nothing replaces them, and nothing is joined to them."""
    rules: Rules
    strips: bool
    """Whether spaces at the ends of a text, and all but one of a run, are removed."""

    @property
    def separator(self) -> str:
        """A character that the model does not know and leaves as it is."""
        known = {*"".join(self.pieces), *self.symbols, *map(chr, self.rules.single)}
        known |= set(map(chr, self.rules.joining))
        # The last planes of Unicode are for private use.
        return next(c for c in map(chr, itertools.count(0x10FFFD, -1)) if c not in known)


def cuttable(content: bytes) -> CuttableModel | None:
    """Return a serialized model, or None for one of another kind.

    None has: unigram; a space behind words or none in front of texts; user-defined symbols of more
    than a character, or of a space; pieces that are marked as unused (which pieces these fall apart
    into depends on the whole text).

    Raises:
        ValueError, IndexError: the bytes are no model.
    """
    kinds: dict[int, list[str]] = {}
    settings = {_TRAINER: {_MODEL_TYPE: 1, _SUFFIX: 0}}
    settings[_NORMALIZER] = {_DUMMY_PREFIX: 1, _REMOVE_EXTRA: 1, _ESCAPE: 1}
    charsmap = b""
    for number, start, end in fields(content, 0, len(content)):
        if number == PIECES:
            piece, kind = _piece(content, start, end)
            kinds.setdefault(kind, []).append(piece)
        elif number in settings:
            for name, begin, after in fields(content, start, end):
                if name in settings[number]:
                    settings[number][name] = varint(content, begin)[0]
                elif (number, name) == (_NORMALIZER, _CHARSMAP):
                    charsmap = content[begin:after]
    trainer, normalizer = settings[_TRAINER], settings[_NORMALIZER]
    symbols = kinds.get(USER_DEFINED, [])
    if (
        trainer != {_MODEL_TYPE: _BPE, _SUFFIX: 0}
        or not (normalizer[_DUMMY_PREFIX] and normalizer[_ESCAPE])
        or any(len(symbol) > 1 or symbol in (" ", SHOWN_SPACE) for symbol in symbols)
        or UNUSED in kinds
    ):
        return None
    return CuttableModel(
        content=content,
        pieces=kinds.get(NORMAL, []),
        symbols=symbols,
        rules=rules(charsmap),
        strips=bool(normalizer[_REMOVE_EXTRA]),
    )


def _piece(content: bytes, start: int, end: int) -> tuple[str, int]:
    piece, kind = "", NORMAL
    for number, begin, after in fields(content, start, end):
        if number == PIECE:
            piece = content[begin:after].decode()
        elif number == TYPE:
            kind = varint(content, begin)[0]
    return piece, kind


def for_parts(model: CuttableModel, *, separator: str) -> bytes:
    """Return a serialized model that encodes parts: spaces stay, and a separator has the last id."""
    kept = (
        field(number, model.content[start:end])
        for number, start, end in fields(model.content, 0, len(model.content))
        if number != _SELF_TEST
    )
    last = field(PIECE, separator.encode())
    # Of settings that stand twice the later ones hold.
    spaces = field(_DUMMY_PREFIX, 0) + field(_REMOVE_EXTRA, 0)
    return b"".join([*kept, field(PIECES, last + field(TYPE, NORMAL)), field(_NORMALIZER, spaces)])
