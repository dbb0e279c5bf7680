import numpy as np
import pytest

from tests.trainer.texts import CLS, ENDS, EOS, SENTENCE_ENDS, SPECIAL, keys_of
from trainer.sample_rng import SampleRng
from trainer.sentences import choose_sentences, find_sentences
from trainer.special_tokens import SpecialTokens
from trainer.text import Spans, TextRows, find_runs

SPECIAL_TOKENS = SpecialTokens.of(SPECIAL, needs=(), sentence_ends=SENTENCE_ENDS)
IDS = {"^": CLS, "$": EOS, ".": ENDS[0], "p": 30, "P": ENDS[1], "x": 40}
"""p and P are of a prompt, P ends a sentence of it."""


def text_rows_of(*rows: str) -> TextRows:
    width = max(map(len, rows))
    tokens = np.array([[IDS[c] for c in row.ljust(width, "$")] for row in rows])
    loss_mask = np.array([[c not in "^pP_" for c in row.ljust(width, "_")] for row in rows])
    return TextRows(tokens, loss_mask, np.array([len(row) for row in rows]), None)


def listed(spans: Spans) -> list[tuple[int, int, int]]:
    return list(zip(*(part.tolist() for part in spans), strict=True))


@pytest.mark.parametrize(
    ("row", "sentences"),
    [
        ("^xx.xxx.$", [(1, 3), (4, 4)]),
        ("^xx.xxx$", [(1, 3)]),  # what is behind the last one is none
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
    text = text_rows_of(row, "^x.$")
    found = find_sentences(text, find_runs(text, SPECIAL_TOKENS), SPECIAL_TOKENS, longest=9)
    assert listed(found) == [(0, *each) for each in sentences] + [(1, 1, 2)]


def test_sentences_that_the_model_cannot_hold() -> None:
    text = text_rows_of("^xxx.xx.$")
    assert listed(
        find_sentences(text, find_runs(text, SPECIAL_TOKENS), SPECIAL_TOKENS, longest=3)
    ) == [(0, 5, 3)]


def test_as_many_as_the_budget_needs() -> None:
    text = text_rows_of(*["^xx.xx.xx.xx.xx.$"] * 2000)
    sentences = find_sentences(text, find_runs(text, SPECIAL_TOKENS), SPECIAL_TOKENS, longest=99)
    budgets = np.where(np.arange(2000) % 2, 4, 99)
    spans = choose_sentences(sentences, budgets, SampleRng(keys_of(2000)))
    counts = np.bincount(spans.rows)
    assert counts[::2].tolist() == [5] * 1000
    assert counts[1::2].tolist() == [2] * 1000
    chosen = np.bincount(spans.starts[spans.rows % 2 == 1] // 3)
    assert ((chosen - 400) ** 2 / 400).sum() < 28  # each as often: χ² of 4 degrees, 1e-5
    assert listed(spans) == sorted(listed(spans))
