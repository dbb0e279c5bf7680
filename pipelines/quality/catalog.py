"""The names of all profiles.

A custom profile is named by its module, as in my.rules:clickbait, or by an entry point.
"""

import importlib.metadata
from itertools import chain

from pipelines.quality import c4, chinese, fineweb, glm, gopher, repetition
from pipelines.quality.custom import load_profile
from pipelines.quality.profile import Profile
from shards.commands.spelling import expected
from shards.errors import UserError

PROFILES: tuple[Profile, ...] = (
    *glm.PROFILES,
    *repetition.PROFILES,
    *gopher.PROFILES,
    *c4.PROFILES,
    *fineweb.PROFILES,
    *chinese.PROFILES,
)
"""All profiles, in the order of their columns in the audit table."""

NONE = "none"
"""The name that stands for no profile."""

SCORERS = ("classifier", "perplexity")
"""The names of the scorers, which are also the names of their flags, in order of application."""

REASONS = tuple(dict.fromkeys(chain.from_iterable(profile.reasons for profile in PROFILES)))
"""Every reason that a profile may give; variants of a family have the same reasons."""

_BY_NAME = {name: profile for profile in PROFILES for name in {profile.name, profile.short}}
NAMES = (NONE, *sorted({*_BY_NAME}))

PROFILE_GROUP = "corpusmill.profiles"
"""The group of the entry points with which installed packages give profiles short names."""


def find_profile(name: str) -> Profile:
    """Return the profile with this name, or the custom profile of this MODULE:NAME.

    The name of a family means its default variant.

    Raises:
        UserError: There is no such profile, or a custom profile is not valid.
    """
    if name in SCORERS:
        raise UserError(
            f"{name} is not a quality profile but a model: --{name} sets the model and its bound, "
            f"and --threshold {name}.min_METRIC=NUMBER sets another bound (docs/quality.md)."
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
        f'"{name}" is not a quality profile: {expected(name, names)}, or name a custom profile as '
        "MODULE:NAME."
    )
