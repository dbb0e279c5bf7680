import dataclasses
import logging
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipelines.compiled import available
from pipelines.corpus.languages import LANGUAGES, parse_languages
from pipelines.filters.fasttext_model import Model, reference_engine
from pipelines.filters.langid import (
    AUTO,
    CHECK_TEXTS,
    GLANCE_CHARS,
    MOST_CHARS,
    Identify,
    LanguageIdentifier,
    load_identifier,
)
from pipelines.filters.step import PENDING_REASON
from shards.errors import UserError
from tests.pipelines.filters import batches
from tests.pipelines.filters.batches import JAPANESE, batch, check_same_rows


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
    return load_identifier(compiled=True)


def test_known_texts(reference: LanguageIdentifier) -> None:
    labels, scores = reference.identify(
        [
            "今天天气很好，\n我们去公园散步。",
            "The weather is fine today.",
            "Il fait beau aujourd'hui.",
        ]
    )
    assert labels == ["zh", "en", "fr"]
    assert scores.dtype == np.float32
    assert scores.shape == (3,)
    assert (scores > 0.5).all()


def test_scores_are_probabilities(reference: LanguageIdentifier) -> None:
    # fastText itself gives 1.00005 here.
    _, scores = reference.identify(["吾輩は猫である。名前はまだ無い。"])
    assert scores[0] == 1.0


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\u3000\t"])
def test_nothing_is_undetermined(reference: LanguageIdentifier, text: str) -> None:
    labels, scores = reference.identify([text])
    assert (labels, scores.tolist()) == (["und"], [0.0])


def test_no_texts(reference: LanguageIdentifier) -> None:
    labels, scores = reference.identify([])
    assert (labels, scores.dtype, scores.shape) == ([], np.float32, (0,))


def test_line_breaks_are_spaces_and_nul_is_harmless(reference: LanguageIdentifier) -> None:
    texts = ["Guten\nMorgen\nzusammen", "Guten Morgen zusammen", "Guten\0Morgen\0zusammen"]
    labels, scores = reference.identify(texts)
    assert labels == ["de"] * 3
    assert len(set(scores.tolist())) == 1


def test_chars_limits_what_is_read() -> None:
    text = "这是一段中文。" + " and now for something completely different" * 50
    whole = load_identifier().identify([text])[0]
    head = load_identifier(chars=7).identify([text])[0]
    assert (whole, head) == (["en"], ["zh"])


def test_engine_and_fingerprint(reference: LanguageIdentifier, fast: LanguageIdentifier) -> None:
    assert reference.engine == reference_engine()
    assert reference.engine.startswith("fasttext")
    assert fast.engine.startswith("fasttext-new ")
    assert reference.fingerprint == fast.fingerprint
    # Of lid.176.ftz as fasttext.cc serves it.
    assert fast.fingerprint.startswith("8f3472cfe8738a7b")


@pytest.mark.parametrize("name", ["fast", "native"])
def test_engines_agree_on_pieces_of_their_table(
    reference: LanguageIdentifier, name: str, request: pytest.FixtureRequest
) -> None:
    engine: LanguageIdentifier = request.getfixturevalue(name)
    texts = [text[i:] for text in CHECK_TEXTS for i in range(0, len(text), 7)]
    texts += ["", " ", "\n\n", "\u3000\t", "\n".join(CHECK_TEXTS)]
    assert len(texts) > 150
    labels, scores = engine.identify(texts)
    expected_labels, expected_scores = reference.identify(texts)
    assert labels == expected_labels
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(scores, expected_scores)
    assert engine.identify([])[0] == []


class Other:
    """A library with other answers."""

    @staticmethod
    def predict(_: str) -> tuple[list[str], list[float]]:
        return ["__label__xx"], [0.5]


def broken(path: str) -> None:
    raise ValueError(f"cannot load {Path(path).name}")


@pytest.mark.parametrize(
    ("load", "why"),
    [
        (lambda _: Other(), "for 'The quick brown fox"),
        (broken, "cannot load lid.176.ftz"),
    ],
    ids=["differs", "fails"],
)
def test_a_library_that_differs_or_fails_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    load: Callable[[str], Other | None],
    why: str,
) -> None:
    library = pytest.importorskip("fasttext_new", reason="the fast engine is optional")
    monkeypatch.setattr(library, "load_model", load)
    with caplog.at_level(logging.WARNING):
        identifier = load_identifier()
    assert identifier.engine == reference_engine()
    assert identifier.identify(["The weather is fine today."])[0] == ["en"]
    [line] = caplog.messages
    assert line.startswith("fasttext-new ")
    assert f"is not used: {why}" in line
    assert line.endswith("fastText itself takes its place.")


def test_compiled_code_answers_under_the_name_of_the_library(native: LanguageIdentifier) -> None:
    usual = load_identifier()
    assert (native.engine, native.fingerprint) == (usual.engine, usual.fingerprint)


def test_compiled_code_that_differs_is_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, native: LanguageIdentifier
) -> None:
    class Wrong:
        def __init__(self, model: Model) -> None:
            assert model.has_tree

        @staticmethod
        def classify(lines: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
            return np.zeros(len(lines), np.int64), np.full(len(lines), 0.5, np.float32)

    monkeypatch.setattr("pipelines.filters.fasttext_kernels.Classifier", Wrong)
    with caplog.at_level(logging.WARNING):
        identifier = load_identifier(compiled=True)
    assert identifier.engine == native.engine
    assert identifier.identify(["今天天气很好"])[0] == ["zh"]
    [record] = caplog.records
    assert "Compiled code for lid.176.ftz is not used: for" in record.getMessage()
    assert "for 'The quick brown fox" in record.getMessage()
    assert f"{native.engine} takes its place" in record.getMessage()


def test_compiled_code_that_fails_is_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, native: LanguageIdentifier
) -> None:
    def failing(_: Model) -> None:
        raise ValueError("it does not fit")

    monkeypatch.setattr("pipelines.filters.fasttext_kernels.Classifier", failing)
    with caplog.at_level(logging.WARNING):
        identifier = load_identifier(compiled=True)
    assert "it does not fit" in caplog.text
    assert identifier.identify(["The weather is fine today."])[0] == ["en"]
    assert identifier.engine == native.engine


def test_without_numba_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("pipelines.compiled.available", lambda: False)
    with caplog.at_level(logging.WARNING):
        identifier = load_identifier(compiled=True)
    assert identifier.identify(["The weather is fine today."])[0] == ["en"]
    assert not caplog.records


def test_numba_that_cannot_be_imported_costs_one_line(
    broken_numba: str, caplog: pytest.LogCaptureFixture
) -> None:
    identifier = load_identifier(compiled=True)
    assert identifier.identify(["The weather is fine today."])[0] == ["en"]
    assert caplog.messages == [broken_numba]


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


CHINESE = "人工智能正在改变我们的生活方式，也带来了新的问题。"
GREEK = "Θέλει αρετή και τόλμη η ελευθερία, του είπε ο γέρος. "
ENGLISH = "The quick brown fox jumps over the lazy dog. "


@pytest.mark.parametrize(
    ("text", "chars"),
    [
        ("", MOST_CHARS),
        (" " * 2000, MOST_CHARS),
        (CHINESE, GLANCE_CHARS),
        (CHINESE * 100, GLANCE_CHARS),
        (CHINESE * 20 + ENGLISH * 30, GLANCE_CHARS),
        (CHINESE + ENGLISH * 30, MOST_CHARS),  # unsure
        (ENGLISH * 10 + CHINESE * 50, MOST_CHARS),  # the first characters are ASCII
        (ENGLISH * 50, MOST_CHARS),
        ("“" + ENGLISH * 50, MOST_CHARS),  # English is not sure enough
        ("\u3000" * 300 + CHINESE * 20, MOST_CHARS),  # nothing but white space at first
        (GREEK * 30, GLANCE_CHARS),
    ],
)
def test_auto_reads_what_is_needed(reference: LanguageIdentifier, text: str, chars: int) -> None:
    first, most = (
        dataclasses.replace(reference, chars=number).identify([text])
        for number in (GLANCE_CHARS, MOST_CHARS)
    )
    if len(text) > MOST_CHARS and not text.isspace():
        assert first[1] != most[1]  # so that it shows which one was taken
    expected = first if chars == GLANCE_CHARS else most
    others = ["Guten Morgen, liebe Sorgen!", CHINESE * 100]
    auto = dataclasses.replace(reference, chars=AUTO)
    labels, scores = auto.identify([others[0], text, others[1]])
    assert (labels[1], scores[1]) == (expected[0][0], expected[1][0])
    assert (labels[::2], scores.dtype) == (["de", "zh"], np.float32)
    assert auto.identify([text])[1] == expected[1]
    assert auto.identify([])[0] == []


def in_child(identifier: LanguageIdentifier, results: "multiprocessing.Queue[list[str]]") -> None:
    results.put(identifier.identify(["The weather is fine today.", "今天天气很好"])[0])


@pytest.mark.parametrize("engine", ["fast", "native"])
def test_works_in_a_forked_child_after_use(engine: str, request: pytest.FixtureRequest) -> None:
    identifier: LanguageIdentifier = request.getfixturevalue(engine)
    identifier.identify(["Used before the fork."])
    context = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[list[str]] = context.Queue()
    child = context.Process(target=in_child, args=(identifier, results))
    child.start()
    assert results.get(timeout=20) == ["en", "zh"]
    child.join(timeout=20)
    assert child.exitcode == 0


def test_missing_model(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"none\.bin: no such .*lid\.176\.bin.*https://fasttext\.cc"
    ):
        load_identifier(tmp_path / "none.bin")


def test_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "lid.bin"
    path.write_text("not a model")
    with pytest.raises(UserError, match=r"lid\.bin is no fastText classifier .*lid\.176\.ftz"):
        load_identifier(path)


def test_parse_languages() -> None:
    assert len(LANGUAGES) == 176
    assert parse_languages(["zh", " en "]) == {"zh", "en"}


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("eng", 'write "en"'),
        ("zho", 'write "zh"'),
        ("Chinese", 'write "zh"'),
        ("zh-CN", 'write "zh"'),
        ("zho_Hans", 'write "zh"'),
        ("EN", 'write "en"'),
        ("fas", 'write "fa"'),
        ("Ger_Latn", 'write "de"'),
        ("klingon", "the codes are on https://fasttext.cc"),
        ("", "the codes are on https://fasttext.cc"),
    ],
)
def test_other_codes_are_refused_with_a_hint(code: str, hint: str) -> None:
    with pytest.raises(UserError, match=f'"{code}" is not a language code .*{hint}'):
        parse_languages(["zh", code])


def test_no_language_is_refused() -> None:
    with pytest.raises(UserError, match="No language is named"):
        parse_languages([])


def test_langid_keeps_the_languages_asked_for() -> None:
    before = batch(batches.CHINESE, batches.ENGLISH, JAPANESE)
    verdict = Identify(("zh", "en"), threshold=0.5)(before)
    check_same_rows(verdict, before)
    assert verdict.batch["language"].to_pylist() == ["zh", "en", "ja"]
    assert verdict.reasons.to_pylist() == [None, None, "language"]
    scores = verdict.batch["score"]
    assert scores.type == pa.float32()
    assert all(0.5 <= score <= 1 for score in scores.to_pylist())


def test_langid_drops_scores_below_the_threshold() -> None:
    score = Identify(("zh", "en"), threshold=0.5)(batch(batches.ENGLISH)).batch["score"][0].as_py()
    for threshold, reason in (
        (score, None),
        (np.nextafter(np.float32(score), 2), "language-score"),
    ):
        verdict = Identify(("zh", "en"), threshold=float(threshold))(batch(batches.ENGLISH))
        assert verdict.reasons.to_pylist() == [reason]


def test_all_languages_are_judged_by_their_score_alone() -> None:
    verdict = Identify(("all",), threshold=0.5)(batch(JAPANESE, batches.CHINESE, " "))
    assert verdict.batch["language"].to_pylist() == ["ja", "zh", "und"]
    assert verdict.reasons.to_pylist() == [None, None, "language-score"]


def test_what_is_to_be_measured_first_is_marked() -> None:
    identify = Identify(("zh", "en"), threshold=1.0)
    identify.defers_drops = True
    verdict = identify(batch(batches.CHINESE, JAPANESE, " "))
    assert verdict.reasons.to_pylist() == [None, "language", "language"]
    assert verdict.batch[PENDING_REASON].to_pylist() == ["language-score", None, None]
