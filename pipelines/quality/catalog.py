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
"""In the order of their columns in a table."""

NONE = "none"
"""What to write in place of a profile to have none."""

SCORERS = ("classifier", "perplexity")
"""The names of scorers, which are those of their flags, in order of application."""

REASONS = tuple(dict.fromkeys(chain.from_iterable(profile.reasons for profile in PROFILES)))
"""Every reason that a profile may give; variants of a family share theirs."""

_BY_NAME = {name: profile for profile in PROFILES for name in {profile.name, profile.short}}
NAMES = (NONE, *sorted({*_BY_NAME}))


def find_profile(name: str) -> Profile:
    """Return the profile of this name; a bare name means the variant that goes by it.

    Raises:
        UserError: there is none; the message lists the nearest names.
    """
    if name in SCORERS:
        raise UserError(
            f"{name} is no quality profile, but a model: its bound stands in --{name} itself, and "
            "can be changed where it was measured (docs/classifiers.md)."
        )
    if name not in _BY_NAME:
        raise UserError(f'"{name}" is no quality profile: {nearest(name, NAMES)}.')
    return _BY_NAME[name]


def nearest(name: str, names: Collection[str]) -> str:
    """Return advice on an unknown name: the nearest names, if any, and all names."""
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(close)}? There are {', '.join(names)}"
    return f"there are {', '.join(names)}"
