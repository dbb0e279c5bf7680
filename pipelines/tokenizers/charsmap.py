"""The rules by which a SentencePiece model normalises characters.

A model carries them compiled: the size of a double array in bytes, the double array (a trie over
the UTF-8 bytes of what is replaced), and the replacements, each closed by a NUL. At each place of a
text the longest rule that fits is applied; if none fits, the character stays (google/sentencepiece,
src/normalizer.cc). The units of the double array are those of darts-clone (s-yata/darts-clone,
include/darts.h): bits 0-7 and 31 hold the label, bit 8 says whether a child holds a value, bits
10-30 hold the offset of the children, which is shifted by 8 more if bit 9 is set.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

_LABEL = 0x800000FF
_VALUE = 0x7FFFFFFF
_LEAF, _WIDE = 1 << 8, 1 << 9

_Array = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CharacterRules:
    """What happens to characters."""

    single: Mapping[int, str]
    """The replacements of code points that are replaced alone; a code point without one stays."""
    joining: frozenset[int]
    """Code points that follow another one in some rule: accents, mostly."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _TrieNodes:
    """Nodes of the trie that whole characters lead to."""

    chars: _Array
    values: _Array
    """Where the replacement starts, -1 for none."""
    nodes: _Array


def parse_charsmap(charsmap: bytes) -> CharacterRules:
    """Return the rules of a `precompiled_charsmap`; an empty one has none.

    Raises:
        ValueError, IndexError: the bytes are no such map.
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
    while len(nodes):  # in a damaged trie they may lead back to where they came from
        later = _characters(units, nodes)
        joining |= set(later.chars.tolist())
        nodes = np.setdiff1d(later.nodes, seen)
        seen = np.union1d(seen, nodes)
    return CharacterRules(single=single, joining=frozenset(joining))


def _until_nul(replacements: bytes, start: int) -> str:
    return replacements[start : replacements.index(b"\0", start)].decode()


def _characters(units: _Array, nodes: _Array) -> _TrieNodes:
    """Return the nodes one character further on, following its bytes one by one."""
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
    """Return the edges out of nodes: the index of the node, and the byte."""
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
    """Return characters with one more UTF-8 byte, and how many each lacks; -1: not yet begun."""
    bounds = np.array([0x80, 0xE0, 0xF0])
    lead = np.searchsorted(bounds, byte, side="right")
    start = byte & np.array([0x7F, 0x1F, 0x0F, 0x07])[lead]
    new = missing < 0
    return (
        np.where(new, start, partial << 6 | byte & 0x3F),
        np.where(new, lead, missing - 1),
    )
