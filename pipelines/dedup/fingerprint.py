"""What dedup compares of each text: the hash of the folded text and, if asked for, its signature.

Native loops give the same as the plain functions of exact.py and minhash.py, from the UTF-8 that a
column of Arrow holds: no string is made for a text.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipelines.compiled import proven
from pipelines.dedup.exact import fold_column
from pipelines.dedup.minhash import PIECE_CHARACTERS, Signatures, Signer, sign
from shards.text_hash import fold, text_hashes

# All white space and what begins like it, runs of it; scripts; few and many grams; ends of pieces.
_CHECK_TEXTS = (
    "",
    " \t\r\n ",
    "The old bridge over the river (3.5 km) wasn't closed for REPAIRS during the whole summer.",
    "".join(f"word{code}{chr(code)}" for code in range(0x3100) if chr(code).isspace()),
    "\x85\u2028 one\r\n\r\ntwo\u00a0\u1680\u3000three \u200b four\u202f\u205f\u2060 five\u3001\x1f",
    "清晨的集市上，卖豆腐的老人把担子放下，\u3000慢慢地吆喝起来。\n\n\U00020000\U0001f600é",
    "ตลาดเช้าริมแม่น้ำ မနက်ခင်းဈေး ផ្សារពេលព្រឹក ຕະຫຼາດ",
    "아침 시장은 해가 뜨기 전부터 사람들로 붐빈다 Старый мост через реку ძველი ხიდი დაკეტილი იყო",
    "清晨的 集a市é" * (PIECE_CHARACTERS // 8),
    " ".join(f"{number:x}é" for number in range(PIECE_CHARACTERS // 5)),
)


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """What dedup compares of n texts."""

    high: np.ndarray
    """uint64[n], one half of the hash of each text."""
    low: np.ndarray
    """uint64[n], the other half."""
    signatures: Signatures | None
    """None where near-duplicates are not looked for."""

    def same_as(self, other: "Fingerprints") -> bool:
        """Return whether others of as many texts are equal."""
        pairs = [(self.high, other.high), (self.low, other.low)]
        if self.signatures and other.signatures:
            pairs += zip(self.signatures.columns, other.signatures.columns, strict=True)
        return all(np.array_equal(*pair) for pair in pairs)


class Fingerprinter:
    """Makes the fingerprints of texts, by native loops or by plain functions that define them."""

    def __init__(self, *, near: bool, compiled: bool = False) -> None:
        """Make a fingerprinter; `near` says whether it signs texts."""
        self.compiled = compiled
        self._near = near
        self._signer = Signer() if near and compiled else None

    def fingerprints(self, texts: pa.Array) -> Fingerprints:
        """Return the fingerprints of a column of large_string without nulls."""
        if not self.compiled:
            plain = [fold(text) for text in texts.to_pylist()]
            return Fingerprints(*text_hashes(plain), sign(plain) if self._near else None)
        folded = fold_column(texts)
        signatures = self._signer.signatures(folded) if self._signer else None
        return Fingerprints(*folded.hashes(), signatures)


def load_fingerprinter(*, near: bool) -> Fingerprinter:
    """Return what makes the fingerprints of texts; if `near`, signatures as well."""
    plain = Fingerprinter(near=near)
    texts = pa.array(_CHECK_TEXTS, pa.large_string())

    def differs(native: Fingerprinter) -> str | None:
        same = native.fingerprints(texts).same_as(plain.fingerprints(texts))
        return None if same else "it makes others"

    return proven(
        "Compiled code for fingerprints",
        lambda: Fingerprinter(near=near, compiled=True),
        differs,
        plain=plain,
        part="signatures" if near else "hashes",
    )
