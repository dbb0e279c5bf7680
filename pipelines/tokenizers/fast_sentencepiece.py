"""SentencePiece's ids several times as fast, from the ids of parts that were seen before.

Texts are cut into short parts with ids of their own (parts.py), which keep recurring. A new part of
known characters is encoded here (part_bpe.py), any other by the library; both are then remembered
(part_cache.py). The library takes several unknown characters in a row for one, which is made up for
at the end. A text that cannot be cut goes to the library as a whole.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sentencepiece import SentencePieceProcessor

from pipelines.tokenizers import part_bpe
from pipelines.tokenizers.agreement import CHECK_TEXTS, verified_encoder
from pipelines.tokenizers.model import Encode, flatten, version
from pipelines.tokenizers.part_cache import Keys, PartCache, Slots
from pipelines.tokenizers.parts import ODD, PartCutter, Parts
from pipelines.tokenizers.sentencepiece_model import (
    SHOWN_SPACE,
    CuttableModel,
    model_for_parts,
    read_cuttable_model,
)

CHUNK_CHARS = 1 << 18
"""Characters of texts worked on at a time: enough for arrays, few enough for the CPU's caches."""
MAX_CHARS = 1 << 20
"""A longer text goes to the library, and with it the others of its chunk."""

# How many pieces a text of the check has.
_CHECK_PIECES = 200

_Array = npt.NDArray[np.int64]
_Ids = tuple[npt.NDArray[Any], _Array]


def part_encoder(content: bytes, reference: Encode) -> Encode | None:
    """Return the fast encoder of a serialized model, or None if there is none or it disagrees.

    Args:
        content: the model.
        reference: the library's encoder of it.
    """

    def build() -> tuple[Encode, list[str]] | None:
        model = read_cuttable_model(content)
        if model is None:
            return None
        return fast_encoder(model, reference), [*CHECK_TEXTS, *_piece_texts(model)]

    refusal = f"{version('sentencepiece')} encodes whole texts: part by part, %s."
    return verified_encoder(build, reference, refusal=refusal)


def _piece_texts(model: CuttableModel) -> list[str]:
    """Return texts made of all pieces, next to other pieces than in the vocabulary."""
    texts = [piece.text.replace(SHOWN_SPACE, " ") for piece in model.pieces]
    count = -(-len(texts) // _CHECK_PIECES)
    return ["".join(texts[first::count]) for first in range(count)]


def fast_encoder(model: CuttableModel, reference: Encode, *, cache_bits: int = 20) -> Encode:
    """Return an encoder that gives the library's ids.

    Args:
        model: the model.
        reference: the library's encoder of the model, for texts that cannot be cut.
        cache_bits: 2 ** cache_bits parts are remembered.

    Raises:
        RuntimeError: the library refuses the model.
    """
    parts = _PartEncoder(model, reference, cache_bits=cache_bits)

    def encode(texts: Sequence[str]) -> _Ids:
        encoded = [parts.encode(group) for group in _groups(texts)]
        tokens, lengths = zip(*encoded, strict=True) if encoded else ((), ())
        return flatten(tokens)[0], flatten(lengths)[0].astype(np.int64, copy=False)

    return encode


def _groups(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts in groups of at least `CHUNK_CHARS` characters, save for the last."""
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
    """The tables of a model, the ids of parts seen before, and the means to encode new ones."""

    def __init__(self, model: CuttableModel, reference: Encode, *, cache_bits: int) -> None:
        self._reference = reference
        self._cutter = PartCutter(model)
        self._separator = ord(model.separator)
        self._library = SentencePieceProcessor()
        self._library.LoadFromSerializedProto(model_for_parts(model))
        self._separator_id = len(self._library) - 1
        self._bpe = part_bpe.PartBpe(model.pieces)
        self._cache = PartCache(bits=cache_bits)
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str]) -> _Ids:
        """Return the ids of all texts, and how many each has."""
        if sum(map(len, texts)) > MAX_CHARS:
            return self._reference(texts)
        try:
            codes, starts = self._cutter.read(texts)
        except UnicodeEncodeError:
            return self._reference(texts)
        odd = np.flatnonzero(codes == ODD)
        if len(odd):
            odd_texts = np.unique(np.searchsorted(starts, odd, side="right") - 1)
            return self._encode_with_odd(texts, odd_texts)
        with self._lock:
            return self._look_up(self._cutter.cut(codes, starts)) or self._reference(texts)

    def _encode_with_odd(self, texts: Sequence[str], odd: _Array) -> _Ids:
        """Return the ids of texts if only the library can encode those with the indices `odd`."""
        rest = list(texts)
        for index in odd.tolist():
            rest[index] = ""
        ids, lengths = self.encode(rest)
        own, own_lengths = self._reference([texts[index] for index in odd.tolist()])
        places = np.repeat(np.cumsum(lengths)[odd], own_lengths)
        lengths[odd] = own_lengths
        return np.insert(ids, places, own), lengths

    def _look_up(self, parts: Parts) -> _Ids | None:
        """Return the ids of the texts that were cut; None if the cache cannot hold their parts."""
        if not self._cache.make_room(len(parts.keys)):
            return None
        slots = self._slots(parts)
        return self._ids(parts, slots) if self._holds(parts, slots) else None

    def _slots(self, parts: Parts) -> Slots:
        """Return the slots of parts in the cache; add those that are new."""
        slots = self._cache.find(parts.keys)
        missing = np.flatnonzero(slots == 0)
        if len(missing):
            keys, first, inverse = np.unique(
                parts.keys[missing], return_index=True, return_inverse=True
            )
            slots[missing] = self._learn(parts, missing[first], keys)[inverse]
        return slots

    def _learn(self, parts: Parts, new: _Array, keys: Keys) -> Slots:
        """Encode new parts, add them to the cache, and return their slots."""
        starts = parts.starts.take(new)
        lengths = parts.starts[1:].take(new) - starts
        codes = parts.codes.take(_ranges(starts, lengths))
        symbols = self._cutter.tables.ids.take(codes)
        plain = (np.minimum.reduceat(symbols, np.cumsum(lengths) - lengths) >= 0) & (
            lengths <= part_bpe.MAX_CHARS
        )
        inside = np.repeat(plain, lengths)
        slots = np.empty(len(new), np.int32)
        slots[plain] = self._cache.add(
            keys[plain],
            texts=(codes[inside], lengths[plain]),
            ids=self._bpe.encode(symbols[inside], lengths[plain]),
        )
        slots[~plain] = self._cache.add(
            keys[~plain],
            texts=(codes[~inside], lengths[~plain]),
            ids=self._by_library(codes[~inside], lengths[~plain]),
        )
        return slots

    def _by_library(self, codes: _Array, lengths: _Array) -> _Ids:
        """Return the ids of parts, and how many each has."""
        # One text, in which each part is followed by a character that joins nothing and has an id
        # of its own.
        separated = np.insert(codes, np.cumsum(lengths), self._separator).astype("<u4")
        ids = self._library.EncodeAsNumpy(separated.tobytes().decode("utf-32-le"))
        separators = np.flatnonzero(ids == self._separator_id)
        ends = separators - np.arange(len(separators))
        return np.delete(ids, separators), np.diff(ends, prepend=0)

    def _holds(self, parts: Parts, slots: Slots) -> bool:
        """Return whether the slots hold these very parts: hashes can be equal by chance."""
        starts = parts.starts.take(parts.hashed)
        lengths = parts.starts[1:].take(parts.hashed) - starts
        slots = slots.take(parts.hashed)
        kept = self._cache.text_starts.take(slots)
        if not np.array_equal(self._cache.text_starts[1:].take(slots) - kept, lengths):
            return False
        places = _ranges(starts, lengths)
        kept_places = places + np.repeat(kept - starts, lengths)
        return np.array_equal(self._cache.texts.take(kept_places), parts.codes.take(places))

    def _ids(self, parts: Parts, slots: Slots) -> _Ids:
        starts = self._cache.id_starts.take(slots)
        lengths = self._cache.id_starts[1:].take(slots) - starts
        ids = self._cache.ids.take(_ranges(starts, lengths))
        ends = np.concatenate(([0], np.cumsum(lengths)))[parts.texts]
        return _fused(ids, ends, unknown=self._library.unk_id())


def _fused(ids: npt.NDArray[np.int32], ends: _Array, *, unknown: int) -> _Ids:
    """Return the ids with runs of unknown ones reduced to one, and how many each text has."""
    is_unknown = ids == unknown
    repeated = np.zeros(len(ids) + 1, np.bool_)
    repeated[1:-1] = is_unknown[:-1] & is_unknown[1:]
    repeated[ends] = False
    surplus = np.flatnonzero(repeated)
    if len(surplus):
        ids = np.delete(ids, surplus)
        ends = ends - np.searchsorted(surplus, ends)
    return ids, np.diff(ends)


def _ranges(starts: _Array, lengths: _Array) -> _Array:
    """Return the numbers from each start on, as many as its length says."""
    shifts = np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
    shifts += np.arange(len(shifts))
    return shifts
