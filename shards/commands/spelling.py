"""Suggests known names for a mistyped name."""

import difflib
from collections.abc import Iterable

LIKENESS = 0.6
"""The minimum similarity at which a name is suggested: difflib's ratio, from 0 to 1."""
_MARGIN = 0.12
"""The maximum by which the similarity of a suggestion may be below that of the best one."""
_LONGEST = 100
"""The maximum number of characters that are compared."""


def nearest(
    name: str, known: Iterable[str], *, most: int = 3, likeness: float = LIKENESS
) -> list[str]:
    """Return the known names that are most similar to a name, the best first.

    Case and leading dashes are ignored, and underscores equal dashes: a known name that differs
    only in these is the only result.
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
    """Return the question "did you mean …?" with the nearest names; "" if no name is similar."""
    near = nearest(name, known, most=most, likeness=likeness)
    return f"did you mean {' or '.join(near)}?" if near else ""


def expected(name: str, known: Iterable[str], *, most: int = 3) -> str:
    """Return a hint about an unknown name: the nearest known names, then all of them.

    The hint continues a sentence after a colon: "did you mean glm-large? Give one of glm-large,
    tiny".
    """
    known = list(known)
    asked = did_you_mean(name, known, most=most)
    listed = f"one of {', '.join(known)}"
    return f"{asked} Give {listed}" if asked else f"give {listed}"


def _folded(name: str) -> str:
    return name.casefold().replace("_", "-").lstrip("-")
