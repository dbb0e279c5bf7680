import pytest

from tests.trainer.texts import SPECIAL_TOKENS, spelled_texts
from trainer.blanks.sentences import find_sentences
from trainer.blanks.text import Spans, find_runs


def listed(spans: Spans) -> list[tuple[int, int, int]]:
    return list(zip(*(part.tolist() for part in spans), strict=True))


@pytest.mark.parametrize(
    ("row", "sentences"),
    [
        ("^xx.xxx.$", [(1, 3), (4, 4)]),
        ("^xx.xxx$", [(1, 3)]),  # what follows the last one is not a sentence
        ("^xx.xxx", [(1, 3)]),  # nor is what the window cuts off
        ("^xx..x.$", [(1, 3), (4, 1), (5, 2)]),
        ("^x.$^xx.$", [(1, 2), (5, 3)]),  # [CLS] is in none
        ("^ppPxx.$", [(4, 3)]),  # nor is a prompt
        ("^ppP$^x.$", [(6, 2)]),
        (".", [(0, 1)]),
        ("^xxxx$", []),
        ("^$^$", []),
        ("", []),
    ],
)
def test_sentences(row: str, sentences: list[tuple[int, int]]) -> None:
    text = spelled_texts(row, "^x.$")
    spans = find_sentences(text, find_runs(text, SPECIAL_TOKENS), SPECIAL_TOKENS, longest=9)
    assert listed(spans) == [(0, *sentence) for sentence in sentences] + [(1, 1, 2)]
