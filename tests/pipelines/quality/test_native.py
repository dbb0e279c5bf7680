"""Native loops that measure otherwise are not used, and a line says so."""

import pytest

from pipelines.quality import Quality
from pipelines.quality.catalog import find_profile
from pipelines.quality.compiled import measures
from pipelines.quality.profile import Bounds
from pipelines.quality.words import MeasuredText
from tests.pipelines.native import loaded
from tests.pipelines.quality.texts import TEXTS

SPECS = ("en=gopher+c4", "fr=gopher", "zh=fineweb2-zh")
LANGUAGES = [("en", "zh", "fr")[at % 3] for at in range(len(TEXTS))]


def one_more(text: MeasuredText, bounds: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    """Measure a hash sign too many where there is one."""
    passed_on, metrics = find_profile("gopher").measure(text, bounds)
    return passed_on, (*metrics[:2], metrics[2] * 2, *metrics[3:])


def shortened(text: MeasuredText, bounds: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    return text.replaced(text.text[:50]), find_profile("gopher").measure(text, bounds)[1]


def check() -> None:
    plain = Quality.parse(SPECS).judge(TEXTS, LANGUAGES)
    asked = loaded(lambda: Quality.parse(SPECS).judge(TEXTS, LANGUAGES), native=True)
    assert (asked.texts, asked.reasons) == (plain.texts, plain.reasons)
    for name, column in plain.metrics.items():
        assert asked.metrics[name].tobytes() == column.tobytes()


def test_they_are_used_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    check()
    assert caplog.messages == []


@pytest.mark.parametrize("measure", [one_more, shortened])
def test_a_measure_that_differs_is_not_used(
    measure: object, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(measures, "MEASURES", {"gopher@paper": measure})
    check()
    (line,) = caplog.messages
    assert line.startswith(
        "Compiled code for gopher@paper is not used: it differs for '  The quick"
    )


def test_without_numba_all_is_measured_as_before(
    broken_numba: str, caplog: pytest.LogCaptureFixture
) -> None:
    check()
    assert caplog.messages == [broken_numba]
