"""The fingerprint of a text: the hash of the folded text and, with --dedup minhash, its signature.

Both are computed from the UTF-8 in the buffers of an Arrow column, without Python strings.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipelines.dedup.exact import fold_column
from pipelines.dedup.minhash import MinHasher, Signatures


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """The fingerprints of n texts."""

    high: np.ndarray
    """uint64[n], the high half of the hash of each text."""
    low: np.ndarray
    """uint64[n], the low half of the hash of each text."""
    signatures: Signatures | None
    """The MinHash signatures; None unless --dedup is minhash."""


class Fingerprinter:
    """Makes the fingerprints of texts."""

    def __init__(self, *, near: bool) -> None:
        """Make a fingerprinter, which also computes MinHash signatures if `near` is true."""
        self._minhasher = MinHasher() if near else None
        self.fingerprints(pa.array([""], pa.large_string()))  # compiles the kernels

    def fingerprints(self, texts: pa.Array) -> Fingerprints:
        """Return the fingerprints of a column of large_string without nulls."""
        folded = fold_column(texts)
        signatures = self._minhasher.signatures(folded) if self._minhasher else None
        return Fingerprints(*folded.hashes(), signatures)
