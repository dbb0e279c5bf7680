"""What a SentencePiece model file says, as far as cutting texts into parts needs it."""

import dataclasses
import functools
import itertools
import struct
from collections.abc import Iterator, Mapping, Sequence

from pipelines.tokenizers.charsmap import Rules, rules
from pipelines.tokenizers.protobuf import field, fields, varint

SHOWN_SPACE = "\u2581"
"""How pieces show a space."""
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""The types of pieces."""

# Fields of sentencepiece_model.proto. ModelProto:
PIECES, _TRAINER, _NORMALIZER, _SELF_TEST = 1, 2, 3, 4
# SentencePiece:
PIECE, _SCORE, TYPE = 1, 2, 3
# TrainerSpec:
_MODEL_TYPE, _SUFFIX = 3, 24
_BPE = 2
# NormalizerSpec:
_CHARSMAP, _DUMMY_PREFIX, _REMOVE_EXTRA, _ESCAPE = 2, 3, 4, 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyPiece:
    """An entry of a model's vocabulary."""

    id: int
    text: str
    score: float
    kind: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class CuttableModel:
    """A BPE model whose texts can be cut into parts that have ids of their own."""

    content: bytes
    pieces: Sequence[VocabularyPiece]
    """What neighbours can be joined to."""
    symbols: Sequence[str]
    """User-defined characters; nothing replaces them, and nothing is joined to them."""
    rules: Rules
    strips: bool
    """Whether spaces at the ends of a text, and all but one of a run, are removed."""

    @functools.cached_property
    def separator(self) -> str:
        """A character that the model does not know and leaves as it is."""
        known = {
            *"".join(piece.text for piece in self.pieces),
            *self.symbols,
            *map(chr, self.rules.single),
        }
        known |= set(map(chr, self.rules.joining))
        # The last planes of Unicode are for private use.
        return next(c for c in map(chr, itertools.count(0x10FFFD, -1)) if c not in known)


def cuttable(content: bytes) -> CuttableModel | None:
    """Return a serialized model, or None for one of another kind.

    None has: unigram; a space behind words or none in front of texts; user-defined symbols of more
    than a character, or of a space; pieces that are marked as unused (what these fall apart into
    depends on the whole text); long pieces of the same score.

    Raises:
        ValueError, IndexError: the bytes are no model.
    """
    kinds: dict[int, list[VocabularyPiece]] = {}
    ids = itertools.count()
    for number, start, end in fields(content, 0, len(content)):
        if number == PIECES:
            piece = _piece(content, start, end, id_=next(ids))
            kinds.setdefault(piece.kind, []).append(piece)
    trainer = _settings(content, _TRAINER, {_MODEL_TYPE: 1, _SUFFIX: 0})
    normalizer = _settings(content, _NORMALIZER, {_DUMMY_PREFIX: 1, _REMOVE_EXTRA: 1, _ESCAPE: 1})
    pieces = kinds.get(NORMAL, [])
    long = [piece for piece in pieces if len(piece.text) > 1]
    symbols = [piece.text for piece in kinds.get(USER_DEFINED, [])]
    if (
        trainer != {_MODEL_TYPE: _BPE, _SUFFIX: 0}
        or not (normalizer[_DUMMY_PREFIX] and normalizer[_ESCAPE])
        or any(len(symbol) > 1 or symbol in (" ", SHOWN_SPACE) for symbol in symbols)
        or UNUSED in kinds
        or len({piece.score for piece in long}) < len(long)
    ):
        return None
    return CuttableModel(
        content=content,
        pieces=pieces,
        symbols=symbols,
        rules=rules(_charsmap(content)),
        strips=bool(normalizer[_REMOVE_EXTRA]),
    )


def _settings(content: bytes, message: int, defaults: Mapping[int, int]) -> dict[int, int]:
    """Return numbers that a part of the model sets, by their fields."""
    found = {
        name: varint(content, begin)[0]
        for name, begin, _ in _inner(content, message)
        if name in defaults
    }
    return {**defaults, **found}


def _charsmap(content: bytes) -> bytes:
    found = [
        content[begin:end] for name, begin, end in _inner(content, _NORMALIZER) if name == _CHARSMAP
    ]
    return found[-1] if found else b""


def _inner(content: bytes, message: int) -> Iterator[tuple[int, int, int]]:
    """Yield the fields of a part of the model."""
    for number, start, end in fields(content, 0, len(content)):
        if number == message:
            yield from fields(content, start, end)


def _piece(content: bytes, start: int, end: int, *, id_: int) -> VocabularyPiece:
    text, score, kind = "", 0.0, NORMAL
    for number, begin, after in fields(content, start, end):
        if number == PIECE:
            text = content[begin:after].decode()
        elif number == _SCORE:
            (score,) = struct.unpack("<f", content[begin:after])
        elif number == TYPE:
            kind = varint(content, begin)[0]
    return VocabularyPiece(id=id_, text=text, score=score, kind=kind)


def for_parts(model: CuttableModel) -> bytes:
    """Return a serialized model for parts: spaces stay, and the separator has the last id."""
    kept = (
        field(number, model.content[start:end])
        for number, start, end in fields(model.content, 0, len(model.content))
        if number != _SELF_TEST
    )
    last = field(PIECE, model.separator.encode())
    # Of settings that stand twice the later ones hold.
    spaces = field(_DUMMY_PREFIX, 0) + field(_REMOVE_EXTRA, 0)
    return b"".join([*kept, field(PIECES, last + field(TYPE, NORMAL)), field(_NORMALIZER, spaces)])
