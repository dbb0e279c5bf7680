"""Native loops that measure otherwise are not used, and a line says so."""

import pytest

from pipelines.quality import Quality
from pipelines.quality.catalog import find_profile
from pipelines.quality.compiled import measures, proven_measure
from pipelines.quality.profile import Bounds
from pipelines.quality.words import MeasuredText, Splitters
from tests.pipelines.native import loaded
from tests.pipelines.quality.texts import TEXTS


@pytest.mark.parametrize("native", [False, True])
def test_a_splitter_of_ones_own_finds_the_words(native: bool) -> None:
    quality = loaded(
        lambda: Quality.parse(["zh@tests.pipelines.native:pairs=gopher"]), native=native
    )
    judged = loaded(lambda: quality.judge(["人工智能正在改变我"], ["zh"]), native=native)
    assert judged.metrics["gopher.words"].tolist() == [5]


@pytest.mark.parametrize("native", [False, True])
def test_a_process_gets_the_measure_that_it_wants(native: bool) -> None:
    profile = find_profile("gopher")
    measure = loaded(
        lambda: proven_measure(profile, profile.defaults, "en", splitters=Splitters()),
        native=native,
    )
    assert (measure is profile.measure) is not native


def one_more(text: MeasuredText, bounds: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    """Measure a hash sign too many where there is one."""
    passed_on, metrics = find_profile("gopher").measure(text, bounds)
    return passed_on, (*metrics[:2], metrics[2] * 2, *metrics[3:])


def shortened(text: MeasuredText, bounds: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    return text.replaced(text.text[:50]), find_profile("gopher").measure(text, bounds)[1]


@pytest.mark.parametrize("measure", [one_more, shortened])
def test_a_measure_that_differs_is_not_used(
    measure: object, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def judged(*, native: bool) -> tuple[object, ...]:
        quality = Quality.parse(["gopher"])
        found = loaded(
            lambda: quality.judge(TEXTS, ["en"] * len(TEXTS)), native=native, differs=True
        )
        return found.texts, found.reasons, [each.tobytes() for each in found.metrics.values()]

    monkeypatch.setattr(measures, "MEASURES", {"gopher@paper": measure})
    assert judged(native=True) == judged(native=False)
    (line,) = caplog.messages
    assert line.startswith(
        "Compiled code for gopher@paper is not used: it differs for '  The quick"
    )
