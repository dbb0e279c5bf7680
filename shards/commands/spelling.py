"""Names that were mistyped: which of the known ones may be meant."""

import difflib
from collections.abc import Iterable

LIKENESS = 0.6
"""The least likeness of a name that is offered, of difflib: from 0 to 1."""
_MARGIN = 0.12
"""How much less like it than the likeliest name another one may be."""
_LONGEST = 100
"""Characters of a name that are compared."""


def nearest(
    name: str, known: Iterable[str], *, most: int = 3, likeness: float = LIKENESS
) -> list[str]:
    """Return the known names that are most like one that was given, the likeliest first.

    Capitals, dashes in front, and underscores for dashes make no difference: a name that differs in
    nothing else is the only one.
    """
    folded: dict[str, str] = {}
    for each in known:
        folded.setdefault(_folded(each), each)
    name = _folded(name[:_LONGEST])
    if name in folded:
        return [folded[name]]
    matcher = difflib.SequenceMatcher(b=name)
    near = []
    for each in difflib.get_close_matches(name, folded, most, likeness):
        matcher.set_seq1(each)
        near.append((matcher.ratio(), folded[each]))
    return [each for ratio, each in near if ratio > near[0][0] - _MARGIN]


def did_you_mean(
    name: str, known: Iterable[str], *, most: int = 3, likeness: float = LIKENESS
) -> str:
    """Return the question whether one of the nearest names is meant; "" if none is near."""
    near = nearest(name, known, most=most, likeness=likeness)
    return f"did you mean {' or '.join(near)}?" if near else ""


def expected(name: str, known: Iterable[str], *, most: int = 3) -> str:
    """Return the advice about a name that is not among the known ones: the nearest, and all.

    It continues behind a colon: "did you mean glm-large? Give one of glm-large, tiny".
    """
    known = list(known)
    asked = did_you_mean(name, known, most=most)
    listed = f"one of {', '.join(known)}"
    return f"{asked} Give {listed}" if asked else f"give {listed}"


def _folded(name: str) -> str:
    return name.casefold().replace("_", "-").lstrip("-")
