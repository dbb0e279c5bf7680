"""Reads SentencePiece model files, and changes copies of them.

A model is a protocol buffer (google/sentencepiece, src/sentencepiece_model.proto). This module
reads only the fields that are needed to split texts into parts. (sentencepiece's own Python module
for these messages needs a different version of protobuf than Beam.)

The rules that normalise characters are compiled into the size of a double array in bytes, the array
(a trie over the UTF-8 bytes of replaced texts), and the replacements, each followed by a NUL.
At each place of a text the longest matching rule is applied; if none matches, the character is kept
(src/normalizer.cc). The units of the double array are those of darts-clone (s-yata/darts-clone,
include/darts.h): bits 0-7 and 31 are the label, bit 8 says whether a child has a value, bits 10-30
are the offset of the children, which is shifted by 8 more bits if bit 9 is set.
"""

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

# protobuf is a dependency of Beam, which is in the same extra as sentencepiece.
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError

SPACE_SYMBOL = "\u2581"
"""The character that represents a space in pieces."""
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""The types of pieces."""

BPE = 2
"""The model type of byte-pair encoding."""

_SCHEMA = """
    name: "corpusmill/sentencepiece_model.proto" package: "corpusmill"
    message_type { name: "ModelProto"
        field { name: "pieces" number: 1 label: LABEL_REPEATED type_name: "SentencePiece" }
        field { name: "trainer_spec" number: 2 label: LABEL_OPTIONAL type_name: "TrainerSpec" }
        field { name: "normalizer_spec" number: 3 label: LABEL_OPTIONAL
                type_name: "NormalizerSpec" } }
    message_type { name: "SentencePiece"
        field { name: "piece" number: 1 label: LABEL_OPTIONAL type: TYPE_BYTES }
        field { name: "score" number: 2 label: LABEL_OPTIONAL type: TYPE_FLOAT }
        field { name: "type" number: 3 label: LABEL_OPTIONAL type: TYPE_INT32 default_value: "1" } }
    message_type { name: "TrainerSpec"
        field { name: "input" number: 1 label: LABEL_REPEATED type: TYPE_BYTES }
        field { name: "model_type" number: 3 label: LABEL_OPTIONAL type: TYPE_INT32
                default_value: "1" }
        field { name: "treat_whitespace_as_suffix" number: 24 label: LABEL_OPTIONAL
                type: TYPE_BOOL }
        field { name: "eos_piece" number: 47 label: LABEL_OPTIONAL type: TYPE_BYTES
                default_value: "</s>" } }
    message_type { name: "NormalizerSpec"
        field { name: "precompiled_charsmap" number: 2 label: LABEL_OPTIONAL type: TYPE_BYTES }
        field { name: "add_dummy_prefix" number: 3 label: LABEL_OPTIONAL type: TYPE_BOOL
                default_value: "true" }
        field { name: "remove_extra_whitespaces" number: 4 label: LABEL_OPTIONAL type: TYPE_BOOL
                default_value: "true" }
        field { name: "escape_whitespaces" number: 5 label: LABEL_OPTIONAL type: TYPE_BOOL
                default_value: "true" }
    }
"""
"""The fields of sentencepiece_model.proto that are read here; other fields stay as they are."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyPiece:
    """An entry of a model's vocabulary."""

    id: int
    text: str
    score: float
    kind: int


# Units of a double array.
_LABEL = 0x800000FF
_VALUE = 0x7FFFFFFF
_LEAF, _WIDE = 1 << 8, 1 << 9

_Array = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CharacterRules:
    """The rules that normalise characters."""

    single: Mapping[int, str]
    """The replacements of single code points; other code points are kept."""
    joining: frozenset[int]
    """The code points that follow another one in some rule; most are accents."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplittableModel:
    """A BPE model whose texts can be split into parts that are encoded independently."""

    content: bytes
    pieces: Sequence[VocabularyPiece]
    """The pieces that BPE may make."""
    symbols: Mapping[str, int]
    """The ids of user-defined characters, which are never replaced or joined."""
    character_rules: CharacterRules
    remove_extra_whitespaces: bool
    """Whether spaces at both ends of a text are removed, and repeated spaces become one."""
    unknown: int
    """The id of unknown characters."""
    byte_fallback: bool
    """Whether unknown characters are encoded as pieces for their bytes."""

    @functools.cached_property
    def separator(self) -> str:
        """A character that the model does not know and does not change."""
        known = {
            *"".join(piece.text for piece in self.pieces),
            *self.symbols,
            *map(chr, self.character_rules.single),
            *map(chr, self.character_rules.joining),
        }
        # The last planes of Unicode are for private use.
        return next(c for c in map(chr, itertools.count(0x10FFFD, -1)) if c not in known)


def read_splittable_model(content: bytes) -> SplittableModel | None:
    """Return a serialized model, or None if its texts cannot be split into parts.

    These models cannot be split: unigram models; models that put a space after words, or none
    before texts; models with user-defined symbols of several characters or of a space, with pieces
    marked as unused (their replacement depends on the whole text), or with several pieces of the
    same score and more than one character.

    Raises:
        ValueError, IndexError: The bytes are not a model.
    """
    model = parse_model(content)
    kinds: dict[int, list[VocabularyPiece]] = {}
    for i, piece in enumerate(model.pieces):
        read = VocabularyPiece(id=i, text=piece.piece.decode(), score=piece.score, kind=piece.type)
        kinds.setdefault(piece.type, []).append(read)
    normalizer, pieces = model.normalizer_spec, kinds.get(NORMAL, [])
    long = [piece for piece in pieces if len(piece.text) > 1]
    symbols = {piece.text: piece.id for piece in kinds.get(USER_DEFINED, [])}
    if (
        model.trainer_spec.model_type != BPE
        or model.trainer_spec.treat_whitespace_as_suffix
        or not (normalizer.add_dummy_prefix and normalizer.escape_whitespaces)
        or any(len(symbol) > 1 or symbol in (" ", SPACE_SYMBOL) for symbol in symbols)
        or UNUSED in kinds
        or UNKNOWN not in kinds
        or len({piece.score for piece in long}) < len(long)
    ):
        return None
    return SplittableModel(
        content=content,
        pieces=pieces,
        symbols=symbols,
        character_rules=parse_charsmap(normalizer.precompiled_charsmap),
        remove_extra_whitespaces=normalizer.remove_extra_whitespaces,
        unknown=kinds[UNKNOWN][0].id,
        byte_fallback=BYTE in kinds,
    )


def hide_user_symbols(content: bytes) -> bytes:
    """Return the serialized model with visible user-defined symbols turned into control symbols.

    A text that contains a user-defined symbol would get its id, but control symbols are never
    matched. White space that the model keeps, such as a line break, stays user-defined, because it
    is text. No id changes.

    Raises:
        ValueError: The bytes are not a model.
    """
    model = parse_model(content)
    for piece in model.pieces:
        text = piece.piece.decode(errors="replace").replace(SPACE_SYMBOL, " ")
        if piece.type == USER_DEFINED and text.strip():
            piece.type = CONTROL
    disarmed: bytes = model.SerializeToString()
    return disarmed


def published_end(content: bytes) -> str:
    """Return the end-of-text piece of a model if spm_train trained the model on files, else "".

    Models of train_tokenizer were not trained on files, and nobody uses their control pieces.

    Raises:
        ValueError: The bytes are not a model.
    """
    model = parse_model(content)
    controls = {piece.piece for piece in model.pieces if piece.type == CONTROL}
    end: bytes = model.trainer_spec.eos_piece
    return end.decode() if model.trainer_spec.input and end in controls else ""


def parse_model(content: bytes) -> Any:
    """Return a serialized model as a message of _SCHEMA, which keeps unknown fields.

    Raises:
        ValueError: The bytes are not a model.
    """
    model = _message_class()()
    try:
        model.ParseFromString(content)
    except DecodeError as error:
        raise ValueError(str(error)) from error
    return model


@functools.cache
def _message_class() -> Any:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(text_format.Parse(_SCHEMA, descriptor_pb2.FileDescriptorProto()))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("corpusmill.ModelProto"))


# The rules that normalise characters.


@dataclasses.dataclass(frozen=True, kw_only=True)
class _TrieNodes:
    """Nodes of the trie at the ends of characters."""

    chars: _Array
    values: _Array
    """Where the replacement of each character starts; -1 if there is none."""
    nodes: _Array


def parse_charsmap(charsmap: bytes) -> CharacterRules:
    """Return the rules of a `precompiled_charsmap`; an empty one has no rules.

    Raises:
        ValueError, IndexError: The bytes are not such a map.
    """
    if not charsmap:
        return CharacterRules(single={}, joining=frozenset())
    size = int.from_bytes(charsmap[:4], "little")
    units = np.frombuffer(charsmap, "<u4", size // 4, 4).astype(np.int64)
    replacements = charsmap[4 + size :]
    first = _characters(units, _children(units[:1], np.zeros(1, np.int64)))
    single = {
        char: _until_nul(replacements, start)
        for char, start in zip(first.chars.tolist(), first.values.tolist(), strict=True)
        if start >= 0
    }
    joining: set[int] = set()
    seen = nodes = np.unique(first.nodes)
    while len(nodes):  # a damaged trie may have cycles
        later = _characters(units, nodes)
        joining |= set(later.chars.tolist())
        nodes = np.setdiff1d(later.nodes, seen)
        seen = np.union1d(seen, nodes)
    return CharacterRules(single=single, joining=frozenset(joining))


def _until_nul(replacements: bytes, start: int) -> str:
    return replacements[start : replacements.index(b"\0", start)].decode()


def _characters(units: _Array, nodes: _Array) -> _TrieNodes:
    """Return the nodes after one more character, whose bytes are followed one by one."""
    complete: list[tuple[_Array, ...]] = []
    partial, missing = np.zeros_like(nodes), np.full_like(nodes, -1)
    while len(nodes):
        parents, labels = _edges(units, nodes)
        partial, missing = _with_byte(partial[parents], missing[parents], labels)
        places = nodes[parents] ^ labels
        nodes = _children(units[places], places)
        whole = missing == 0
        leaf = (units[places] & _LEAF) != 0
        values = np.where(leaf, units[np.where(leaf, nodes, 0)] & _VALUE, -1)
        complete.append((partial[whole], values[whole], nodes[whole]))
        nodes, partial, missing = np.unique(np.stack([nodes, partial, missing])[:, ~whole], axis=1)
    chars, starts, reached = map(np.concatenate, zip(*complete, strict=True))
    return _TrieNodes(chars=chars, values=starts, nodes=reached)


def _edges(units: _Array, nodes: _Array) -> tuple[_Array, _Array]:
    """Return the edges out of nodes, as the index of each edge's node, and each edge's byte."""
    labels = np.arange(1, 256)
    places = nodes[:, None] ^ labels
    inside = places < len(units)
    parents, columns = np.nonzero(
        inside & ((units[np.where(inside, places, 0)] & _LABEL) == labels)
    )
    return parents, labels[columns]


def _children(units: _Array, places: _Array) -> _Array:
    """Return the nodes below the units at these places."""
    return places ^ ((units >> 10) << ((units & _WIDE) >> 6))


def _with_byte(partial: _Array, missing: _Array, byte: _Array) -> tuple[_Array, _Array]:
    """Add a byte to UTF-8 characters; return these, and how many bytes each still lacks.

    `missing` is -1 before the first byte.
    """
    bounds = np.array([0x80, 0xE0, 0xF0])
    lead = np.searchsorted(bounds, byte, side="right")
    start = byte & np.array([0x7F, 0x1F, 0x0F, 0x07])[lead]
    new = missing < 0
    return (
        np.where(new, start, partial << 6 | byte & 0x3F),
        np.where(new, lead, missing - 1),
    )
