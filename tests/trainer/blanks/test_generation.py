import pytest

from tests.trainer.texts import SPECIAL_TOKENS, keys_of, spelled_texts
from trainer.blanks.generation import GenerationBlanks, choose_generation_blanks
from trainer.blanks.sample_rng import SampleRng
from trainer.blanks.text import find_runs


def generated(
    *rows: str, infill: float, ratio: float = 0.25, longest: int = 99
) -> GenerationBlanks:
    text = spelled_texts(*rows)
    return choose_generation_blanks(
        text,
        find_runs(text, SPECIAL_TOKENS),
        min_ratio=ratio,
        infill_prob=infill,
        longest=longest,
        rng=SampleRng(keys_of(len(rows))),
    )


def starts(row: str, *, infill: float) -> set[int]:
    return set(generated(*[row] * 400, infill=infill).spans.starts.tolist())


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("^xxxxxxxxxx$", set(range(2, 10))),  # int(12 / 4) to 10 of 12 tokens
        ("^x$^xxxxxx$", {2, 4, 5, 6, 7, 8, 9}),  # never at a [CLS], but after it
        ("^ppppppxxx$", {7, 8, 9}),  # never in a prompt
        ("^xxxxpppppp", {2, 3, 4}),  # nothing to predict after it: what precedes it
        ("^x$", {2}),
        ("x", {0}),
        ("^x", {1}),
    ],
)
def test_where_ends_begin(row: str, expected: set[int]) -> None:
    assert starts(row, infill=0) == expected


def test_runs_inside() -> None:
    blanks = generated(*["^ppxxxxxxxx$"] * 2000, infill=1)
    assert not blanks.is_end.any()
    sizes, begins = blanks.spans.sizes, blanks.spans.starts
    assert set(sizes.tolist()) == set(range(3, 9))  # 9 and 10 are cut to the run
    assert begins.min() == 3
    assert (begins + sizes).max() == 11
    assert set(begins[sizes == 6].tolist()) == {3, 4, 5}


def test_no_more_than_the_model_has_positions() -> None:
    assert generated(*["xxxxxxxx"] * 50, infill=1, ratio=1, longest=5).spans.sizes.max() == 5
