"""The hash that decides whether texts are equal: BLAKE2b of the text with folded white space."""

import hashlib
from collections.abc import Iterable

import numpy as np

DIGEST_BYTES = 16

ERASED_ORDER = 0
"""The order stored with the hash of an erased text: later runs drop every copy of such a text."""


def fold_spaces(text: str) -> str:
    """Replace every run of white space with one space, and strip the text.

    Deduplication calls texts equal if they are equal in this form.
    """
    return " ".join(text.split())


def digest(folded: bytes | memoryview) -> bytes:
    """Return the hash of the UTF-8 of a folded text."""
    return hashlib.blake2b(folded, digest_size=DIGEST_BYTES).digest()


def text_hashes(folded: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the high and low halves (uint64[n] each) of the hash of each folded text."""
    return split_halves([digest(text.encode()) for text in folded])


def split_halves(digests: Iterable[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Return hashes as their high and low halves, uint64[n] each."""
    words = np.frombuffer(b"".join(digests), "<u8").reshape(-1, 2)
    return words[:, 0].copy(), words[:, 1].copy()


def join_halves(high: np.ndarray, low: np.ndarray) -> list[bytes]:
    """Return the hashes that consist of high and low halves (uint64[n] each)."""
    content = np.stack([high, low], axis=1).astype("<u8").tobytes()
    return [content[at : at + DIGEST_BYTES] for at in range(0, len(content), DIGEST_BYTES)]
