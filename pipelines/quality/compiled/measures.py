"""The measures of profiles as native loops."""

from collections.abc import Mapping
from types import MappingProxyType

from pipelines.quality.compiled import c4, chinese, fineweb, gopher, repetition
from pipelines.quality.profile import Measure
from pipelines.quality.words import DATATROVE, SPACES

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "c4@paper": c4.measure_lines(paper=True),
        "c4@datatrove": c4.measure_lines(paper=False),
        "c4@fineweb": c4.measure_lines(paper=False),
        "fineweb2-zh@sentences": chinese.measure_units,
        "fineweb2-zh@datatrove": chinese.measure_lines,
        "fineweb@paper": fineweb.measure_words(SPACES),
        "fineweb@code": fineweb.measure_words(DATATROVE),
        "gopher@paper": gopher.measure_paper,
        "gopher@datatrove": gopher.measure_datatrove,
        "gopher-repetition@paper": repetition.measure_paper,
        "gopher-repetition@datatrove": repetition.measure_datatrove,
    }
)
"""By the name of a profile, what takes the place of its `measure`."""
