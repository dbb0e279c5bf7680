"""What a profile measures in a text, metric by metric."""

from pipelines.quality.catalog import find_profile
from pipelines.quality.words import MeasuredText, Splitters

SPLITTERS = Splitters()


def measure(
    name: str, text: str, language: str = "en", **bounds: float
) -> tuple[MeasuredText, dict[str, float]]:
    """Return what the profile passes on, and its metrics; bounds replace published ones."""
    profile = find_profile(name)
    measured = MeasuredText(text, language, splitters=SPLITTERS)
    passed_on, values = profile.measure(measured, {**profile.defaults, **bounds})
    return passed_on, dict(zip(profile.metrics, values, strict=True))


def metrics(name: str, text: str, language: str = "en", **bounds: float) -> dict[str, float]:
    return measure(name, text, language, **bounds)[1]


def some_metrics(
    name: str, text: str, wanted: dict[str, float], language: str = "en"
) -> dict[str, float]:
    """Return the metrics of the names in `wanted`."""
    values = metrics(name, text, language)
    return {key: values[key] for key in wanted}
