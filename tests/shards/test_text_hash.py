import hashlib

import numpy as np
import pytest

from shards.text_hash import digest, fold, halves, whole


@pytest.mark.parametrize(
    ("text", "folded"),
    [("", ""), (" \n", ""), ("a  b\u3000c\n", "a b c"), ("a\u00a0\u2003b", "a b"), ("ab", "ab")],
)
def test_fold_leaves_single_spaces(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_halves_are_those_of_blake2b_and_can_be_joined_again() -> None:
    texts = [b"", b"a b c", "一只篮子".encode()]
    digests = [digest(text) for text in texts]
    assert digests == [hashlib.blake2b(text, digest_size=16).digest() for text in texts]
    high, low = halves(digests)
    assert [int(part) for part in high] == [int.from_bytes(one[:8], "little") for one in digests]
    assert [int(part) for part in low] == [int.from_bytes(one[8:], "little") for one in digests]
    assert whole(high, low) == digests
    assert whole(*halves([])) == []
    assert halves([])[0].dtype == np.uint64
