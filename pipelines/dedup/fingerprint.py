"""The fingerprint of a text: the hash of the folded text and, with minhash, its signature.

Both are made of the UTF-8 that a column of Arrow holds: no string is made for a text.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipelines.dedup.exact import fold_column
from pipelines.dedup.minhash import Signatures, Signer


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """The fingerprints of n texts."""

    high: np.ndarray
    """uint64[n], one half of the hash of each text."""
    low: np.ndarray
    """uint64[n], the other half."""
    signatures: Signatures | None
    """None where near-duplicates are not looked for."""


class Fingerprinter:
    """Makes the fingerprints of texts."""

    def __init__(self, *, near: bool) -> None:
        """Make a fingerprinter; `near` says whether it signs texts."""
        self._signer = Signer() if near else None
        self.fingerprints(pa.array([""], pa.large_string()))  # compiles the kernels

    def fingerprints(self, texts: pa.Array) -> Fingerprints:
        """Return the fingerprints of a column of large_string without nulls."""
        folded = fold_column(texts)
        signatures = self._signer.signatures(folded) if self._signer else None
        return Fingerprints(*folded.hashes(), signatures)
