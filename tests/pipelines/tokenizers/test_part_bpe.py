import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.tokenizers import part_bpe
from pipelines.tokenizers.part_bpe import NONE, NOTHING, PairTable, PartBpe
from pipelines.tokenizers.sentencepiece_model import VocabularyPiece


def test_byte_pair_encoding_of_parts() -> None:
    texts = ["a", "b", "c", "d", "ab", "bc", "abc", "cd", "aa", "aaa"]
    pieces = [
        VocabularyPiece(id=10 + i, text=text, score=float(-i), kind=1)
        for i, text in enumerate(texts)
    ]
    ids = {piece.text: piece.id for piece in pieces}
    cases = {
        "a": ["a"], "ab": ["ab"], "ba": ["b", "a"], "abc": ["abc"], "abcd": ["abc", "d"],
        "bcd": ["bc", "d"], "dcd": ["d", "cd"], "aaaa": ["aa", "aa"], "aaa": ["aaa"],
        "aaaaa": ["aa", "aaa"], "abcabcbcab": ["abc", "abc", "bc", "ab"],
    }  # fmt: skip
    letters = np.array([ids[letter] for case in cases for letter in case], np.int32)
    joined, lengths = PartBpe(pieces).encode(letters, np.array([len(case) for case in cases]))
    expected = [[ids[piece] for piece in case] for case in cases.values()]
    assert joined.tolist() == [i for case in expected for i in case]
    assert lengths.tolist() == [len(case) for case in expected]


def test_byte_pair_encoding_of_nothing() -> None:
    pieces = [VocabularyPiece(id=0, text="a", score=0.0, kind=1)]
    joined, lengths = PartBpe(pieces).encode(np.empty(0, np.int32), np.empty(0, np.int64))
    assert (len(joined), len(lengths)) == (0, 0)


def test_more_pieces_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [VocabularyPiece(id=i, text="a" * (i + 1), score=float(-i), kind=1) for i in range(9)]
    monkeypatch.setattr(part_bpe, "NONE", 7 << 4)
    with pytest.raises(ValueError, match="8 long pieces"):
        PartBpe(pieces)


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 40) | st.integers(0, NOTHING - 1), st.integers(0, 40)),
        st.integers(0, NONE - 1),
        max_size=300,
    )
)
def test_a_table_of_pairs(pairs: dict[tuple[int, int], int]) -> None:
    lefts, rights = np.array([*pairs], np.int64).reshape(-1, 2).T
    table = PairTable(lefts, rights, np.array([*pairs.values()], np.int64))
    assert table.find(lefts, rights).tolist() == [*pairs.values()]
    some = [*range(0, 41, 5), NOTHING]
    every = np.array([*itertools.product(some, some)]).T
    expected = [pairs.get((a, b), NONE) for a, b in every.T.tolist()]
    assert table.find(*every).tolist() == expected


def test_a_full_table_of_pairs() -> None:
    count = 30_000
    lefts, rights = np.divmod(np.arange(count), 97)
    table = PairTable(lefts, rights, np.arange(count))
    assert table.find(lefts, rights).tolist() == list(range(count))
    assert set(table.find(rights + 400, lefts).tolist()) == {NONE}
    with pytest.raises(ValueError, match=r"1048575 pieces or more"):
        PairTable(np.array([NOTHING]), np.array([0]), np.array([0]))
