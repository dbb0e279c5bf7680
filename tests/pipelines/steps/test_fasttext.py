"""Compares the kernels with fastText's own code and, for trained models, with fasttext-new."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.steps.fasttext import FastTextClassifier, read_file
from pipelines.steps.langid import CHECK_TEXTS, installed_model
from tests.pipelines.quality.models import TEXTS, write_classifier

Answers = tuple[list[str], list[np.float32]]
Engine = Callable[[Sequence[str]], Answers]


def cplusplus(path: Path) -> Engine:
    """Return a model, with any labels, loaded by fastText's own code."""
    model = fasttext.load_model(str(path)).f

    def answer(lines: Sequence[str]) -> Answers:
        found = [model.predict(line + "\n", 1, 0.0, "strict")[0] for line in lines]
        return [label for _, label in found], [np.float32(score) for score, _ in found]

    return answer


def compiled(path: Path) -> Engine:
    file = read_file(path)
    classifier = FastTextClassifier(file)

    def answer(lines: Sequence[str]) -> Answers:
        numbers, scores = classifier.classify([line.encode() for line in lines])
        return [file.labels[number] for number in numbers], list(scores)

    return answer


@pytest.fixture(scope="module")
def reference() -> Engine:
    return cplusplus(installed_model())


@pytest.fixture(scope="module")
def engine() -> Engine:
    return compiled(installed_model())


WORDS = (
    "</s>", "<s>", "__label__", "__label__en", "__label__unknown", "_", "__label_", "a", "<", ">",
    "the", "de", "\u0301", "e\u0301", "中", "中文", "ゲーム", "\U0001f468\u200d\U0001f469", "\xa0",
    "\u3000", "\x85", "\u2028", "\x1c", "\x1f", "\x7f", "\x80", "\u07ff", "\u0800", "\uffff",
    "\U0010ffff", "x" * 47, "x" * 48, "x" * 49, "é" * 24 + "a", "y" * 300, "汉" * 400,
)  # fmt: skip
SPACES = (" ", "  ", "\t", "\r", "\v", "\f", "\0", " \0\t ")

texts = st.lists(
    st.one_of(
        st.sampled_from(WORDS),
        st.sampled_from(SPACES),
        st.text(st.characters(exclude_categories=("Cs",)), max_size=12),
        st.sampled_from(CHECK_TEXTS),
    ),
    min_size=1,
    max_size=40,
).map(lambda parts: "".join(parts).replace("\n", " ") or " ")


@given(st.lists(texts, min_size=1, max_size=5))
@example([" ", "a", "\t\r\v\fa\fb\vc\rd\te", "x" * 100_000])
@example([" ".join(map(str, range(20_000))), "\xa0".join(["Привет", "мир"] * 300)])
def test_any_text(reference: Engine, engine: Engine, lines: list[str]) -> None:
    assert engine(lines) == reference(lines)


@pytest.mark.parametrize(
    ("options", "quantize"),
    [
        ({"dim": 16, "minn": 2, "maxn": 4}, None),
        ({"dim": 3, "minn": 3, "maxn": 3, "bucket": 7}, None),
        ({"dim": 7, "minn": 0, "maxn": 0}, None),
        ({"dim": 5, "minn": 2, "maxn": 4}, {"qnorm": True}),
        ({"dim": 9, "minn": 2, "maxn": 4}, {"qnorm": True, "qout": True, "dsub": 4}),
        ({"dim": 8, "minn": 2, "maxn": 4}, {"qnorm": True, "cutoff": 300}),
    ],
    ids=str,
)
def test_trained_models(
    tmp_path: Path, options: dict[str, int], quantize: dict[str, Any] | None
) -> None:
    path = write_classifier(tmp_path / "model.bin", quantize=quantize, **options)
    tests = [*TEXTS, *WORDS, *CHECK_TEXTS]
    tests = [line for line in tests if line.strip(" \n\r\t\v\f\0")]
    expected = cplusplus(path)(tests)
    if not (quantize or {}).get("qout"):  # fasttext-new 0.1.0 gives different scores here
        library = pytest.importorskip("fasttext_new", reason="it trains")
        rust = [*map(library.load_model(str(path)).predict, tests)]
        scores = [np.float32(scores[0]) for _, scores in rust]
        assert expected == ([labels[0] for labels, _ in rust], scores)
    assert compiled(path)(tests) == expected
