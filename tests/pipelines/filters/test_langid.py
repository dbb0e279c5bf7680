import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from pipelines.compiled import available
from pipelines.corpus.languages import LANGUAGES
from pipelines.filters.fasttext_model import reference_engine
from pipelines.filters.langid import CHECK_TEXTS, LanguageIdentifier, load_identifier
from tests.golden.corpus_languages import LABELS, own_labels
from tests.pipelines.native import loaded


@pytest.fixture(scope="module")
def reference() -> LanguageIdentifier:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "fasttext_new", None)
        return load_identifier()


@pytest.fixture(scope="module")
def fast() -> LanguageIdentifier:
    pytest.importorskip("fasttext_new", reason="the fast engine is optional")
    return load_identifier()


@pytest.fixture(scope="module")
def native() -> LanguageIdentifier:
    if not available():
        pytest.skip("numba is not here, or not to be used")
    return loaded(load_identifier, native=True)


def test_engine_and_fingerprint(
    reference: LanguageIdentifier, fast: LanguageIdentifier, native: LanguageIdentifier
) -> None:
    assert (native.engine, native.fingerprint) == (fast.engine, fast.fingerprint)
    assert reference.engine == reference_engine()
    assert reference.engine.startswith("fasttext")
    assert fast.engine.startswith("fasttext-new ")
    assert reference.fingerprint == fast.fingerprint
    # Of lid.176.ftz as fasttext.cc serves it.
    assert fast.fingerprint.startswith("8f3472cfe8738a7b")
    assert fast.labels == LANGUAGES


@pytest.mark.parametrize("name", ["fast", "native"])
def test_engines_agree_on_pieces_of_their_table(
    reference: LanguageIdentifier, name: str, request: pytest.FixtureRequest
) -> None:
    engine: LanguageIdentifier = request.getfixturevalue(name)
    texts = [text[i:] for text in CHECK_TEXTS for i in range(0, len(text), 7)]
    texts += ["\n".join(CHECK_TEXTS), "Guten\nMorgen\0zusammen", "", " ", "\n\n", "\u3000\t"]
    assert len(texts) > 150
    labels, scores = engine.identify(texts)
    expected_labels, expected_scores = reference.identify(texts)
    assert labels == expected_labels
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(scores, expected_scores)
    assert (labels[-4:], scores[-4:].tolist()) == (["und"] * 4, [0.0] * 4)
    assert engine.identify([])[0] == []


def test_native_loops_give_the_labels_of_another_model(
    tmp_path: Path, native: LanguageIdentifier
) -> None:
    own_labels(tmp_path)
    own = loaded(lambda: load_identifier(tmp_path / "glot.ftz"), native=True)
    found, scores = own.identify(CHECK_TEXTS)
    usual_labels, usual_scores = native.identify(CHECK_TEXTS)
    assert found == [LABELS.get(label, label) for label in usual_labels]
    assert {LABELS["zh"], LABELS["en"]} <= {*found}
    np.testing.assert_array_equal(scores, usual_scores)


class Other:
    """A library with other answers."""

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
    assert identifier.engine == reference_engine()
    assert identifier.identify(["The weather is fine today."])[0] == ["en"]
    [line] = caplog.messages
    assert line.startswith("fasttext-new ")
    assert "is not used: for 'The quick brown fox" in line
    assert line.endswith("fastText itself takes its place.")


def test_compiled_code_serves_threads(
    reference: LanguageIdentifier, native: LanguageIdentifier
) -> None:
    texts = [f"{text} {i}" for i in range(20) for text in CHECK_TEXTS]
    parts = [texts[i::4] for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(native.identify, parts))
    for part, (labels, scores) in zip(parts, found, strict=True):
        expected_labels, expected_scores = reference.identify(part)
        assert labels == expected_labels
        np.testing.assert_array_equal(scores, expected_scores)
