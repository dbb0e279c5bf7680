"""A SentencePiece model file: what it says, and copies of it with changes.

It is a protocol buffer (google/sentencepiece, src/sentencepiece_model.proto). Only what cutting
texts into parts needs is read here.
"""

import dataclasses
import functools
import itertools
import struct
from collections.abc import Iterator, Mapping, Sequence

from pipelines.tokenizers.charsmap import CharacterRules, parse_charsmap

SHOWN_SPACE = "\u2581"
"""How pieces show a space."""
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""The types of pieces."""

# Fields of sentencepiece_model.proto. ModelProto:
_PIECES, _TRAINER, _NORMALIZER, _SELF_TEST = 1, 2, 3, 4
# SentencePiece:
_PIECE, _SCORE, _TYPE = 1, 2, 3
# TrainerSpec:
_MODEL_TYPE, _SUFFIX = 3, 24
_BPE = 2
# NormalizerSpec:
_CHARSMAP, _DUMMY_PREFIX, _REMOVE_EXTRA, _ESCAPE = 2, 3, 4, 5

# Wire types of protocol buffers.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


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
    """Those that BPE may join neighbours into."""
    symbols: Mapping[str, int]
    """The ids of user-defined characters: they are never replaced, and never joined to others."""
    character_rules: CharacterRules
    strips: bool
    """Whether spaces at the ends of a text, and all but one of a run, are removed."""
    unknown: int
    """The id of unknown characters."""
    spells_unknown: bool
    """Whether unknown characters are spelled in pieces for bytes."""

    @functools.cached_property
    def separator(self) -> str:
        """A character that the model does not know and leaves as it is."""
        known = {
            *"".join(piece.text for piece in self.pieces),
            *self.symbols,
            *map(chr, self.character_rules.single),
            *map(chr, self.character_rules.joining),
        }
        # The last planes of Unicode are for private use.
        return next(c for c in map(chr, itertools.count(0x10FFFD, -1)) if c not in known)


def read_cuttable_model(content: bytes) -> CuttableModel | None:
    """Return a serialized model, or None if its texts cannot be cut.

    Those of the following cannot: unigram models; models that put a space behind words, or none in
    front of texts; user-defined symbols of more than a character, or of a space; pieces marked as
    unused (what these fall apart into depends on the whole text); long pieces of the same score.

    Raises:
        ValueError, IndexError: the bytes are no model.
    """
    kinds: dict[int, list[VocabularyPiece]] = {}
    ids = itertools.count()
    for number, start, end in fields(content, 0, len(content)):
        if number == _PIECES:
            piece = _piece(content, start, end, id_=next(ids))
            kinds.setdefault(piece.kind, []).append(piece)
    trainer = _settings(content, _TRAINER, {_MODEL_TYPE: 1, _SUFFIX: 0})
    normalizer = _settings(content, _NORMALIZER, {_DUMMY_PREFIX: 1, _REMOVE_EXTRA: 1, _ESCAPE: 1})
    pieces = kinds.get(NORMAL, [])
    long = [piece for piece in pieces if len(piece.text) > 1]
    symbols = {piece.text: piece.id for piece in kinds.get(USER_DEFINED, [])}
    if (
        trainer != {_MODEL_TYPE: _BPE, _SUFFIX: 0}
        or not (normalizer[_DUMMY_PREFIX] and normalizer[_ESCAPE])
        or any(len(symbol) > 1 or symbol in (" ", SHOWN_SPACE) for symbol in symbols)
        or UNUSED in kinds
        or UNKNOWN not in kinds
        or len({piece.score for piece in long}) < len(long)
    ):
        return None
    return CuttableModel(
        content=content,
        pieces=pieces,
        symbols=symbols,
        character_rules=parse_charsmap(_charsmap(content)),
        strips=bool(normalizer[_REMOVE_EXTRA]),
        unknown=kinds[UNKNOWN][0].id,
        spells_unknown=BYTE in kinds,
    )


def _settings(content: bytes, message: int, defaults: Mapping[int, int]) -> dict[int, int]:
    """Return the numbers that a submessage of the model sets, by their fields."""
    numbers = {
        name: _varint(content, begin)[0]
        for name, begin, _ in _subfields(content, message)
        if name in defaults
    }
    return {**defaults, **numbers}


def _charsmap(content: bytes) -> bytes:
    maps = [
        content[begin:end]
        for name, begin, end in _subfields(content, _NORMALIZER)
        if name == _CHARSMAP
    ]
    return maps[-1] if maps else b""


def _subfields(content: bytes, message: int) -> Iterator[tuple[int, int, int]]:
    """Yield the fields of a submessage of the model."""
    for number, start, end in fields(content, 0, len(content)):
        if number == message:
            yield from fields(content, start, end)


def _piece(content: bytes, start: int, end: int, *, id_: int) -> VocabularyPiece:
    text, score, kind = "", 0.0, NORMAL
    for number, begin, after in fields(content, start, end):
        if number == _PIECE:
            text = content[begin:after].decode()
        elif number == _SCORE:
            (score,) = struct.unpack("<f", content[begin:after])
        elif number == _TYPE:
            kind = _varint(content, begin)[0]
    return VocabularyPiece(id=id_, text=text, score=score, kind=kind)


def disarm_symbols(model: bytes) -> bytes:
    """Return the serialized model with its visible user-defined symbols made control symbols.

    A text that holds the string of a user-defined symbol would get its id; control symbols are
    never matched. White space, such as a line break that a model keeps, stays user-defined: it is
    text. No id changes.
    """
    changed = bytearray(model)
    for number, start, end in fields(model, 0, len(model)):
        if number == _PIECES:
            _disarm(changed, model, start, end)
    return bytes(changed)


def _disarm(changed: bytearray, model: bytes, start: int, end: int) -> None:
    spans = {number: span for number, *span in fields(model, start, end)}
    if _PIECE not in spans or _TYPE not in spans:
        return
    symbol = model[slice(*spans[_PIECE])].decode(errors="replace").replace(SHOWN_SPACE, " ")
    type_offset = spans[_TYPE][0]
    if model[type_offset] == USER_DEFINED and symbol.strip():
        changed[type_offset] = CONTROL


# Protocol buffers on the wire, as far as model files use them.


def fields(message: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
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


def field(number: int, value: int | bytes) -> bytes:
    """Return a serialized field, whose value is a number of at least 0, or bytes."""
    if isinstance(value, int):
        return _varint_bytes(number << 3 | _VARINT) + _varint_bytes(value)
    return _varint_bytes(number << 3 | _BYTES) + _varint_bytes(len(value)) + value


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


def _varint_bytes(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:  # noqa: PLR2004  seven bits a byte
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
