import numpy as np
import pytest

from tests.trainer.texts import SPECIAL_TOKENS, keys_of, spelled_texts
from trainer.blanks.sample_rng import SampleRng
from trainer.blanks.sentences import choose_sentences, find_sentences
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


def test_as_many_as_the_budget_needs() -> None:
    text = spelled_texts(*["^xx.xx.xx.xx.xx.$"] * 2000)
    sentences = find_sentences(text, find_runs(text, SPECIAL_TOKENS), SPECIAL_TOKENS, longest=99)
    budgets = np.where(np.arange(2000) % 2, 4, 99)
    spans = choose_sentences(sentences, budgets, SampleRng(keys_of(2000)))
    counts = np.bincount(spans.rows)
    assert counts[::2].tolist() == [5] * 1000
    assert counts[1::2].tolist() == [2] * 1000
    chosen = np.bincount(spans.starts[spans.rows % 2 == 1] // 3)
    assert ((chosen - 400) ** 2 / 400).sum() < 28  # each as often: χ² of 4 degrees, 1e-5
    assert listed(spans) == sorted(listed(spans))
