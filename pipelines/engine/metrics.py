"""Beam's metrics: what an engine's pages, and its other interfaces, show of the tasks."""

from pipelines.engine import beam
from pipelines.engine.figures import Figures

NAMESPACE = "corpusmill"


def count(figures: Figures) -> None:
    """Add figures to the metrics of the step that calls this."""
    for name, number in figures.counts.items():
        beam.Metrics.counter(NAMESPACE, name).inc(number)
    for name, spread in figures.spreads:
        # Beam takes one value at a time, and keeps what a Spread has.
        distribution = beam.Metrics.distribution(NAMESPACE, name)
        for value in spread.values():
            distribution.update(value)
