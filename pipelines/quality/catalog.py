"""The profiles that can be named, and what a wrong name might have meant.

A custom profile is named by its module, my.rules:clickbait, or by an entry point.
"""

import importlib.metadata
from collections.abc import Collection
from itertools import chain

from pipelines.quality import c4, chinese, fineweb, glm, gopher, repetition
from pipelines.quality.custom import load_profile
from pipelines.quality.profile import Profile
from shards.commands.spelling import did_you_mean
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
"""The word for no profile."""

SCORERS = ("classifier", "perplexity")
"""The names of scorers, which are those of their flags, in order of application."""

REASONS = tuple(dict.fromkeys(chain.from_iterable(profile.reasons for profile in PROFILES)))
"""Every reason that a profile may give; variants of a family share theirs."""

_BY_NAME = {name: profile for profile in PROFILES for name in {profile.name, profile.short}}
NAMES = (NONE, *sorted({*_BY_NAME}))

PROFILE_GROUP = "corpusmill.profiles"
"""Entry points of installed packages: the short name of a profile, and its MODULE:NAME."""


def find_profile(name: str) -> Profile:
    """Return the profile of this name, or of this MODULE:NAME.

    A bare name means the variant that goes by it.

    Raises:
        UserError: there is none, or it is no proper one; the message lists the nearest names.
    """
    if name in SCORERS:
        raise UserError(
            f"{name} is no quality profile, but a model: --{name} measures by it and sets a bound, "
            f"and --threshold {name}.min_METRIC=NUMBER sets another one (docs/quality.md)."
        )
    if name in _BY_NAME:
        return _BY_NAME[name]
    if ":" in name:
        return load_profile(name, taken=_BY_NAME)
    installed = importlib.metadata.entry_points(group=PROFILE_GROUP)
    for entry in installed.select(name=name):
        return load_profile(entry.value, taken=_BY_NAME)
    names = [*NAMES, *sorted(installed.names)]
    raise UserError(
        f'"{name}" is no quality profile: {nearest(name, names)}; write your own as MODULE:NAME.'
    )


def nearest(name: str, names: Collection[str]) -> str:
    """Return advice on an unknown name: the nearest names, if any, and all names."""
    meant = did_you_mean(name, names, likeness=0.5)
    return f"{meant} There are {', '.join(names)}" if meant else f"there are {', '.join(names)}"
