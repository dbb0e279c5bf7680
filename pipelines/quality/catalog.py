"""The profiles that can be named, and what a wrong name might have meant."""

import difflib
from collections.abc import Collection
from itertools import chain

from pipelines.quality import c4, chinese, fineweb, glm, gopher, repetition
from pipelines.quality.profile import Profile
from shards.errors import UserError

PROFILES: tuple[Profile, ...] = (
    *glm.PROFILES,
    *repetition.PROFILES,
    *gopher.PROFILES,
    *c4.PROFILES,
    *fineweb.PROFILES,
    *chinese.PROFILES,
)
"""In the order in which their columns stand in a table."""

NONE = "none"
"""The name of having no profile."""

REASONS = tuple(dict.fromkeys(chain.from_iterable(each.reasons for each in PROFILES)))
"""Every reason that a profile may give; variants of a family share theirs."""

_BY_NAME = {name: each for each in PROFILES for name in {each.name, each.short}}
NAMES = (NONE, *sorted({*_BY_NAME}))


def find_profile(name: str) -> Profile:
    """Return the profile of a name, a bare one meaning the variant that bears it.

    Raises:
        UserError: there is none; the message lists the nearest names.
    """
    if name not in _BY_NAME:
        raise UserError(f'"{name}" is no quality profile: {nearest(name, NAMES)}.')
    return _BY_NAME[name]


def nearest(name: str, names: Collection[str]) -> str:
    """Return what to write instead of an unknown name: the nearest ones, else all."""
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(close)}? There are {', '.join(names)}"
    return f"there are {', '.join(names)}"
