"""The measures of profiles as native loops, equal to the plain ones number by number.

Importing this package imports numba: see pipelines/compiled.py.
"""

import logging
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import numpy as np

from pipelines.compiled import compiling
from pipelines.quality.compiled import c4, chinese, fineweb, gopher, repetition
from pipelines.quality.profile import Bounds, Measure, Profile
from pipelines.quality.words import DATATROVE, SPACES, MeasuredText, Splitters

_LOG = logging.getLogger(__name__)

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "c4@paper": c4.measure_lines(paper=True),
        "c4@datatrove": c4.measure_lines(paper=False),
        "c4@fineweb": c4.measure_lines(paper=False),
        "chinese-web": chinese.measure_web,
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

_PAGE = (
    "  The quick brown fox jumps over the lazy dog, and THAT is that.\n"
    '- Cited facts are better facts.[1][edit] He said "so it goes..."\r\n'
    "\n\n- We use cookies on this page; it has a privacy policy. {x}\n"
    "Please enable JavaScript to see more of the lorem ipsum…\u2028* It's 3.14 or #1!\n"
    "\tThe quick brown fox jumps over the lazy dog, and THAT is that.\n\n\n"
)
_CHINESE_PAGE = (
    "黄河是中国的第二长河，发源于青藏高原。它流经九个省区，最后注入渤海。"
    "古人说：“黄河之水天上来。”这是真的吗？当然……Python 3.11 于 2022 年发布；"
)
_CHECKS = (
    "",
    " \n\t",
    "word",
    _PAGE,
    _PAGE * 2,
    "a b c d e f g ab c d e f g a b c d e f " * 3,
    "one\x1ctwo\x1f\x85three\u3000\xa0four \u200bfive 1½² \U0001f600 … .... ##\r",
    _CHINESE_PAGE,
    f"{_CHINESE_PAGE}\n{_CHINESE_PAGE * 2}\n\n的 年 在 月 是 和 日 了 於",
)


def proven_measure(
    profile: Profile, bounds: Bounds, language: str, *, splitters: Splitters
) -> Measure:
    """Return the compiled measure of a profile if it gives the plain one's results, else that.

    A few texts are measured both ways, which also compiles what will be needed.

    Args:
        profile: The profile.
        bounds: Its bounds in the language.
        language: A label of lid.176.
        splitters: What splits the words of these texts.
    """
    if profile.name not in MEASURES:
        return profile.measure
    difference = _first_difference(profile, bounds, language, splitters)
    if difference is None:
        return MEASURES[profile.name]
    _warn(profile.name, difference)
    return profile.measure


def _first_difference(
    profile: Profile, bounds: Bounds, language: str, splitters: Splitters
) -> str | None:
    def results(measure: Measure) -> list[tuple[str, bytes]]:
        texts = (MeasuredText(text, language, splitters=splitters) for text in _CHECKS)
        measured = [measure(text, bounds) for text in texts]
        return [(text.text, np.array(metrics, np.float64).tobytes()) for text, metrics in measured]

    expected = results(profile.measure)
    try:
        with compiling():
            given = results(MEASURES[profile.name])
    except Exception as error:  # noqa: BLE001  whatever it is, the plain measure does the work
        return repr(error)
    places = [
        place for place, pair in enumerate(zip(given, expected, strict=True)) if len({*pair}) > 1
    ]
    return f"they differ for {_CHECKS[places[0]]!r}" if places else None


@cache
def _warn(name: str, difference: str) -> None:
    """Say once why a compiled measure is not used."""
    _LOG.warning("The compiled measure of %s is not used: %s.", name, difference)
