import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fasttext
import numpy as np
import pytest

from pipelines.corpus.languages import LANGUAGES
from pipelines.steps.fasttext import fasttext_version
from pipelines.steps.langid import (
    CHECK_TEXTS,
    LanguageIdentifier,
    installed_model,
    load_identifier,
)
from tests.golden.corpus_languages import LABELS, own_labels

Answers = tuple[list[str], list[float]]


@pytest.fixture(scope="module")
def reference() -> Callable[[Sequence[str]], Answers]:
    """A function that identifies texts by fastText's own code, and labels blank texts "und"."""
    model = fasttext.load_model(str(installed_model())).f

    def answer(text: str) -> tuple[str, float]:
        if not text.strip():
            return "und", 0.0
        line = text.replace("\n", " ")
        ((score, label),) = model.predict(f"{line}\n", 1, 0.0, "strict")
        return label.removeprefix("__label__"), min(float(np.float32(score)), 1.0)

    def answers(texts: Sequence[str]) -> Answers:
        labels, scores = zip(*map(answer, texts), strict=True)
        return [*labels], [*scores]

    return answers


@pytest.fixture(scope="module")
def identifier() -> LanguageIdentifier:
    return load_identifier()


def test_engine_and_fingerprint(identifier: LanguageIdentifier) -> None:
    assert identifier.library.startswith("fasttext")
    # This is the hash of lid.176.ftz as fasttext.cc serves it.
    assert identifier.fingerprint.startswith("8f3472cfe8738a7b")
    assert identifier.labels == LANGUAGES


def test_kernels_agree_with_the_library_on_pieces_of_its_table(
    reference: Callable[[Sequence[str]], Answers], identifier: LanguageIdentifier
) -> None:
    texts = [text[i:] for text in CHECK_TEXTS for i in range(0, len(text), 7)]
    texts += ["\n".join(CHECK_TEXTS), "Guten\nMorgen\0zusammen", "", " ", "\n\n", "\u3000\t"]
    assert len(texts) > 150
    labels, scores = identifier.identify(texts)
    assert scores.dtype == np.float32
    assert (labels, scores.tolist()) == reference(texts)
    assert identifier.identify([])[0] == []


def test_kernels_give_the_labels_of_another_model(
    tmp_path: Path, identifier: LanguageIdentifier
) -> None:
    own_labels(tmp_path)
    found, scores = load_identifier(tmp_path / "glot.ftz").identify(CHECK_TEXTS)
    usual_labels, usual_scores = identifier.identify(CHECK_TEXTS)
    assert found == [LABELS.get(label, label) for label in usual_labels]
    assert {LABELS["zh"], LABELS["en"]} <= {*found}
    np.testing.assert_array_equal(scores, usual_scores)


class Other:
    """A language library that gives different results."""

    @staticmethod
    def predict(_: str) -> tuple[list[str], list[float]]:
        return ["__label__xx"], [0.5]


def test_a_library_that_differs_is_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    library = pytest.importorskip("fasttext_new", reason="the fast engine is optional")
    monkeypatch.setattr(library, "load_model", lambda _: Other())
    with caplog.at_level(logging.WARNING):
        identifier = load_identifier()
    assert identifier.library == fasttext_version()
    assert identifier.identify(["The weather is fine today."])[0] == ["en"]
    [line] = caplog.messages
    assert line.startswith("fasttext-new ")
    assert "is not used: for 'The quick brown fox" in line
    assert line.endswith("fastText itself is used instead.")


def test_kernels_serve_threads(
    reference: Callable[[Sequence[str]], Answers], identifier: LanguageIdentifier
) -> None:
    texts = [f"{text} {i}" for i in range(20) for text in CHECK_TEXTS]
    parts = [texts[i::4] for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(identifier.identify, parts))
    for part, (labels, scores) in zip(parts, found, strict=True):
        assert (labels, scores.tolist()) == reference(part)
