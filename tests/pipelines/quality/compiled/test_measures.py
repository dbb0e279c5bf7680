"""Which compiled measures are used."""

import logging

import numpy as np
import pytest

from pipelines.quality import Quality
from pipelines.quality.catalog import PROFILES, find_profile
from pipelines.quality.compiled import measures, proven_measure
from pipelines.quality.compiled.measures import MEASURES
from pipelines.quality.profile import Bounds, Measure
from pipelines.quality.words import MeasuredText
from tests.pipelines.quality.compiled.comparing import NoLibraries
from tests.pipelines.quality.texts import TEXTS

SPLITTERS = NoLibraries()


def used(name: str, language: str = "en") -> Measure:
    profile = find_profile(name)
    return proven_measure(profile, profile.defaults, language, splitters=SPLITTERS)


def one_more(text: MeasuredText, bounds: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    """Measure a hash sign too many where there is one."""
    passed_on, metrics = find_profile("gopher").measure(text, bounds)
    return passed_on, (*metrics[:2], metrics[2] * 2, *metrics[3:])


def shortened(text: MeasuredText, bounds: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    return text.replaced(text.text[:50]), find_profile("gopher").measure(text, bounds)[1]


def broken(_: MeasuredText, __: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    raise RuntimeError("no such processor")


@pytest.mark.parametrize("name", MEASURES)
def test_compiled_measures_are_used(name: str, caplog: pytest.LogCaptureFixture) -> None:
    for language in ("en", "zh", "fr"):
        if find_profile(name).serves(language):
            assert used(name, language) is MEASURES[name]
    assert caplog.messages == []


def test_a_profile_without_one_is_measured_as_before() -> None:
    assert used("glm") is find_profile("glm").measure
    assert set(MEASURES) < {profile.name for profile in PROFILES}


@pytest.mark.parametrize(
    ("measure", "reason"),
    [
        (one_more, "it differs for '  The quick"),
        (shortened, "it differs for '  The quick"),
        (broken, "RuntimeError: no such processor"),
    ],
)
def test_a_measure_that_differs_is_not_used(
    measure: Measure,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(measures, "MEASURES", {"gopher@paper": measure})
    with caplog.at_level(logging.WARNING):
        for language in ("en", "fr", "en"):
            assert used("gopher", language) is find_profile("gopher").measure
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(f"Compiled code for gopher@paper is not used: {reason}")


def test_judgements_are_the_same() -> None:
    specs = ("gopher-repetition+gopher+c4+fineweb", "zh=chinese-web+glm", "de=none")
    languages = [("en", "zh", "fr", "de")[index % 4] for index in range(len(TEXTS))]
    plain = Quality.parse(specs).judge(TEXTS, languages)
    native = Quality.parse(specs, compiled=True).judge(TEXTS, languages)
    assert (native.texts, native.reasons) == (plain.texts, plain.reasons)
    assert native.changed.tolist() == plain.changed.tolist()
    assert native.metrics.keys() == plain.metrics.keys()
    for name, column in plain.metrics.items():
        assert native.metrics[name].dtype == np.float32
        assert native.metrics[name].tobytes() == column.tobytes()


def test_without_numba_all_is_measured_as_before(
    broken_numba: str, caplog: pytest.LogCaptureFixture
) -> None:
    quality = Quality.parse(("gopher+c4",), compiled=True)
    plain = Quality.parse(("gopher+c4",)).judge(TEXTS, ["en"] * len(TEXTS))
    assert quality.judge(TEXTS, ["en"] * len(TEXTS)).reasons == plain.reasons
    assert caplog.messages == [broken_numba]
