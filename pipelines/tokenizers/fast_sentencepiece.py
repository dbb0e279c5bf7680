"""SentencePiece's ids several times as fast, from the ids of parts that were seen before.

BPE only ever joins neighbours into pieces. So where two characters stand side by side in no piece,
nothing is joined across, and the ids of a text are those of its parts, one behind the other. Cut at
all such places, texts consist of short parts that come again and again:

    text     The cat  sat。好的，好的
    read     .The.cat.sat.好的,好的        a space in front and for each run of white space
    parts    .The|.cat|.sat|.|好的|,|好的  (each dot in front of a word is a space)

The library encodes each part once. Three of its ways reach beyond a part: white space at the ends
and in runs is removed (done here, first); some characters are replaced together with the next (a text
with a character that stands behind another one in such a rule goes to the library); unknown
characters in a row give one id (done here, last). See google/sentencepiece, src/bpe_model.cc,
src/normalizer.cc and src/sentencepiece_processor.cc.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sentencepiece import SentencePieceProcessor

from pipelines.tokenizers.model import Encode, flat
from pipelines.tokenizers.part_cache import PartCache
from pipelines.tokenizers.part_tables import ODD, SPACE, part_tables
from pipelines.tokenizers.sentencepiece_model import CuttableModel, for_parts

CHUNK_CHARS = 1 << 16
"""Texts are worked on so many characters at a time: the arrays stay in the processor's caches."""
MAX_CHARS = 1 << 20
"""Longer texts go to the library."""

# Odd, so that it has an inverse modulo 2 ** 64 (a prime of xxHash).
_BASE = 0x9E3779B185EBCA87

_Array = npt.NDArray[np.int64]
_Ids = tuple[npt.NDArray[Any], _Array]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Parts:
    """Texts, cut."""

    codes: _Array
    starts: _Array
    """Where each part starts in `codes`, and the end of the last."""
    hashes: npt.NDArray[np.uint64]
    texts: _Array
    """The index of the first part of each text, and the number of parts."""


def fast_encoder(model: CuttableModel, reference: Encode, *, cache_bits: int = 19) -> Encode:
    """Return an encoder that gives the library's ids.

    Args:
        model: what it encodes by.
        reference: the library's encoder of the model, for texts that cannot be cut.
        cache_bits: 2 ** cache_bits parts are remembered.

    Raises:
        RuntimeError: the library does not take the model.
    """
    parts = _PartEncoder(model, reference, cache_bits=cache_bits)

    def encode(texts: Sequence[str]) -> _Ids:
        found = [parts.encode(group) for group in _groups(texts)]
        tokens, lengths = zip(*found, strict=True) if found else ((), ())
        return flat(tokens)[0], flat(lengths)[0].astype(np.int64, copy=False)

    return encode


def _groups(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts in runs of at least `CHUNK_CHARS` characters, but for the last."""
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


class _PartEncoder:
    """The tables of a model, the ids of parts, and the library for new ones."""

    def __init__(self, model: CuttableModel, reference: Encode, *, cache_bits: int) -> None:
        self._reference = reference
        self._strips = model.strips
        self._separator = ord(model.separator)
        self._tables = part_tables(model, separator=model.separator)
        self._library = SentencePieceProcessor()
        self._library.LoadFromSerializedProto(for_parts(model, separator=model.separator))
        self._separator_id = len(self._library) - 1
        self._cache = PartCache(bits=cache_bits)
        self._powers, self._inverses = _powers(2 * CHUNK_CHARS)

    def encode(self, texts: Sequence[str]) -> _Ids:
        """Return the ids of all texts, and how many each has."""
        try:
            codes, starts = self._read(texts)
        except UnicodeEncodeError:
            return self._reference(texts)
        if len(codes) > MAX_CHARS:
            return self._reference(texts)
        odd = np.flatnonzero(codes == ODD)
        if len(odd):
            return self._without(texts, np.unique(np.searchsorted(starts, odd, side="right") - 1))
        parts = self._cut(*(_stripped(codes, starts) if self._strips else (codes, starts)))
        slots = self._find(parts)
        return self._ids(parts, slots) if self._holds(parts, slots) else self._reference(texts)

    def _without(self, texts: Sequence[str], odd: _Array) -> _Ids:
        """Return the ids of texts some of which only the library can encode."""
        rest = list(texts)
        for index in odd.tolist():
            rest[index] = ""
        ids, lengths = self.encode(rest)
        own, own_lengths = self._reference([texts[index] for index in odd.tolist()])
        places = np.repeat(np.cumsum(lengths)[odd], own_lengths)
        lengths[odd] = own_lengths
        return np.insert(ids, places, own), lengths

    def _read(self, texts: Sequence[str]) -> tuple[_Array, _Array]:
        """Return how the code points of all texts read, and where each text starts, and the end.

        In front of each text stands a space, as the library puts it; an empty one gets it only where
        spaces are removed, and there another one follows the last text.
        """
        if self._strips:
            joined = " ".join(["", *texts, ""])
        else:
            joined = "".join([f" {text}" for text in texts if text])
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        starts = np.concatenate(([0], np.cumsum(lengths + (self._strips | (lengths > 0)))))
        points = np.frombuffer(joined.encode("utf-32-le"), np.uint32)
        return self._tables.reading.take(points), starts

    def _cut(self, codes: _Array, text_starts: _Array) -> _Parts:
        count = len(codes)
        pairs = self._tables.left.take(codes[:-1]) ^ self._tables.right.take(codes[1:])
        cut = np.ones(count + 1, np.bool_)
        np.logical_not(self._tables.joined.take(pairs), out=cut[1:count])
        cut[text_starts] = True
        starts = np.flatnonzero(cut)
        if count > len(self._powers):
            self._powers, self._inverses = _powers(count)
        # The hash of a part is the sum of code * base ** place, places counted from its start.
        sums = np.zeros(count + 1, np.uint64)
        np.cumsum(codes.view(np.uint64) * self._powers[:count], out=sums[1:])
        hashes = np.diff(sums.take(starts)) * self._inverses.take(starts[:-1])
        texts = np.searchsorted(starts, text_starts)
        return _Parts(codes=codes, starts=starts, hashes=hashes, texts=texts)

    def _find(self, parts: _Parts) -> npt.NDArray[np.int32]:
        """Return the slots of parts in the cache; new ones are put there."""
        self._cache.make_room(len(parts.hashes))
        slots = self._cache.find(parts.hashes)
        missing = np.flatnonzero(slots == 0)
        if len(missing):
            hashes, first, again = np.unique(
                parts.hashes[missing], return_index=True, return_inverse=True
            )
            slots[missing] = self._learn(parts, missing[first], hashes)[again]
        return slots

    def _learn(
        self, parts: _Parts, new: _Array, hashes: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int32]:
        """Return the slots of new parts."""
        lengths = parts.starts[new + 1] - parts.starts[new]
        codes = parts.codes.take(_ranges(parts.starts[new], lengths))
        # One text, with a character between the parts that joins nothing and has an id of its own.
        apart = np.insert(codes, np.cumsum(lengths), self._separator).astype("<u4")
        ids = self._library.EncodeAsNumpy(apart.tobytes().decode("utf-32-le"))
        between = np.flatnonzero(ids == self._separator_id)
        ends = between - np.arange(len(between))
        return self._cache.add(
            hashes,
            texts=(codes, lengths),
            ids=(np.delete(ids, between), np.diff(ends, prepend=0)),
        )

    def _holds(self, parts: _Parts, slots: npt.NDArray[np.int32]) -> bool:
        """Return whether the slots hold these parts: hashes can be equal by chance."""
        lengths = np.diff(parts.starts)
        starts = self._cache.text_starts.take(slots)
        if not np.array_equal(self._cache.text_starts[1:].take(slots) - starts, lengths):
            return False
        return np.array_equal(self._cache.texts.take(_ranges(starts, lengths)), parts.codes)

    def _ids(self, parts: _Parts, slots: npt.NDArray[np.int32]) -> _Ids:
        starts = self._cache.id_starts.take(slots)
        lengths = self._cache.id_starts[1:].take(slots) - starts
        ids = self._cache.ids.take(_ranges(starts, lengths))
        ends = np.concatenate(([0], np.cumsum(lengths)))[parts.texts]
        return _fused(ids, ends, unknown=self._library.unk_id())


def _stripped(codes: _Array, starts: _Array) -> tuple[_Array, _Array]:
    """Return the texts without each space that another one follows, and without the last.

    As a space stands in front of each text, this takes those at their ends too, and all of a text
    that has nothing else.
    """
    space = codes == SPACE
    extra = np.flatnonzero(space[:-1] & space[1:])
    kept = np.ones(len(codes), np.bool_)
    kept[extra] = False
    kept[-1] = False
    return codes[kept], starts - np.searchsorted(extra, starts)


def _fused(ids: npt.NDArray[np.int32], ends: _Array, *, unknown: int) -> _Ids:
    """Return ids with one unknown instead of several in a row, and how many each text has."""
    is_unknown = ids == unknown
    again = np.zeros(len(ids) + 1, np.bool_)
    again[1:-1] = is_unknown[:-1] & is_unknown[1:]
    again[ends] = False
    surplus = np.flatnonzero(again)
    if len(surplus):
        ids = np.delete(ids, surplus)
        ends = ends - np.searchsorted(surplus, ends)
    return ids, np.diff(ends)


def _ranges(starts: _Array, lengths: _Array) -> _Array:
    """Return the numbers from each start on, as many as its length."""
    shifts = np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
    shifts += np.arange(len(shifts))
    return shifts


def _powers(count: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return the powers of the base from 0 on, modulo 2 ** 64, and their inverses."""
    steps = np.ones((2, count), np.uint64)
    steps[0, 1:] = _BASE
    steps[1, 1:] = pow(_BASE, -1, 1 << 64)
    powers, inverses = np.multiply.accumulate(steps, axis=1)
    return powers, inverses
