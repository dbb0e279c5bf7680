import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.tokenizers import piece_tables as making
from pipelines.tokenizers.piece_kernels import LEFT, ODD, READING, RIGHT, SYMBOL, encode_texts
from pipelines.tokenizers.piece_tables import piece_tables
from pipelines.tokenizers.sentencepiece_model import CharacterRules, CuttableModel, VocabularyPiece
from tests.pipelines.tokenizers.trained import model_of


def made_of(texts: list[str]) -> CuttableModel:
    """A model without rules for characters; the pieces have the ids from 10 on, the best first."""
    pieces = [
        VocabularyPiece(id=10 + i, text=text, score=float(-i), kind=1)
        for i, text in enumerate(texts)
    ]
    return CuttableModel(
        content=b"",
        pieces=pieces,
        symbols={"|": 3},
        character_rules=CharacterRules(
            single={ord("Ａ"): "a", ord("æ"): "ab"}, joining=frozenset()
        ),
        strips=True,
        unknown=0,
        spells_unknown=False,
    )


def encoded(model: CuttableModel, text: str) -> list[int]:
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    ids, lengths = np.empty(99, np.int32), np.empty(1, np.int64)
    used = encode_texts(points, np.array([len(points)]), piece_tables(model), ids, lengths)
    assert lengths.tolist() == [used]
    return ids[:used].tolist()


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a", "▁ a"), ("ab", "▁ ab"), ("ba", "▁ b a"), ("abc", "▁ abc"), ("abcd", "▁ abc d"),
        ("bcd", "▁ bc d"), ("dcd", "▁ d cd"), ("aaaa", "▁ aa aa"), ("aaa", "▁ aaa"),
        ("aaaaa", "▁ aa aaa"), ("abcabcbcab", "▁ abc abc bc ab"), (" b  b ", "▁ b ▁ b"),
        ("Ａb", "▁ ab"), ("æc", "▁ abc"), ("a|b", "▁ a | b"), ("axxb", "▁ a 0 b"), ("zq", "▁ 0"),
        ("zqa", "▁ 0 a"), ("", ""), ("  ", ""),
    ],
)  # fmt: skip
def test_byte_pair_encoding(text: str, pieces: str) -> None:
    # z stands in a piece without being one.
    texts = ["▁", "a", "b", "c", "d", "ab", "bc", "abc", "cd", "aa", "aaa", "az"]
    ids = {text: 10 + i for i, text in enumerate(texts)} | {"0": 0, "|": 3}
    assert encoded(made_of(texts), text) == [ids[piece] for piece in pieces.split()]


def test_characters_of_a_model(nmt_nfkc: bytes) -> None:
    characters = piece_tables(model_of(nmt_nfkc)).characters
    assert [int(characters[ord(c), READING]) for c in "a，　\n人"] == [ord(c) for c in "a,  人"]
    for odd in (0, 1, 0x301, 0xA8, 0x3099, 0xD800):
        assert characters[odd, READING] == ODD
    assert characters[ord("…"), SYMBOL] < -1


def test_pieces_are_not_cut(content: bytes) -> None:
    model = model_of(content)
    tables = piece_tables(model)
    assert max(len(piece.text) for piece in model.pieces) > 3
    for piece in model.pieces:
        codes = [ord(character) for character in piece.text.replace("▁", " ")]
        lefts, rights = tables.characters[codes[:-1], LEFT], tables.characters[codes[1:], RIGHT]
        assert np.unpackbits(tables.joinable, bitorder="little")[lefts ^ rights].all()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text("abcdef", min_size=2, max_size=5), unique=True, max_size=60))
def test_pairs_are_found_with_their_ranks(long: list[str]) -> None:
    texts = [*"▁abcdef", *long]
    ids = {text: 10 + i for i, text in enumerate(texts)}
    for text in long:
        symbols = [ids[character] for character in text]
        pieces = encoded(made_of(texts), text)[1:]
        assert "".join(texts[i - 10] for i in pieces) == text
        assert len(pieces) < len(symbols) or not any(pair in ids for pair in _pairs_of(text))


def _pairs_of(text: str) -> set[str]:
    return {text[i : i + 2] for i in range(len(text) - 1)}


def test_more_pieces_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "NONE", 7)
    with pytest.raises(ValueError, match="pieces, too many"):
        piece_tables(made_of(["a", "b", "ab", "ba", "aa", "bb"]))
