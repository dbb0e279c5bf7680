"""The measures of profiles as native loops, equal to the plain ones number by number.

Importing a module of this package imports numba: see pipelines/compiled.py.
"""

import numpy as np

from pipelines.compiled import proven
from pipelines.quality.profile import Bounds, Measure, Profile
from pipelines.quality.words import CHINESE, MeasuredText, Splitters

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

    def make() -> Measure | None:
        from pipelines.quality.compiled.measures import MEASURES  # noqa: PLC0415  imports numba

        return MEASURES.get(profile.name)

    def results(measure: Measure) -> list[tuple[str, bytes]]:
        texts = (MeasuredText(text, language, splitters=splitters) for text in _CHECKS)
        measured = [measure(text, bounds) for text in texts]
        return [(text.text, np.array(metrics, np.float64).tobytes()) for text, metrics in measured]

    def differs(measure: Measure) -> str | None:
        both = zip(_CHECKS, results(measure), results(profile.measure), strict=True)
        different = (text for text, given, expected in both if given != expected)
        return next((f"it differs for {text!r}" for text in different), None)

    return proven(
        f"Compiled code for {profile.name}",
        make,
        differs,
        plain=profile.measure,
        part=profile_part(profile.name, language),
    )


def profile_part(name: str, language: str) -> str:
    """Return the part (compiled.py) of a profile's kernels for the words of a language."""
    return f"profile {name}, {'Chinese' if language in CHINESE else 'other'} words"
