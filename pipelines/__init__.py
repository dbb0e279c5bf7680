"""Beam pipelines that turn raw corpora into token shards.

These names are public. So are `pipelines.corpus`, `pipelines.quality` and `pipelines.transforms`,
from which you build corpora, custom profiles and custom pipelines (docs/own.md). Everything else
may change without notice.
"""

from typing import TYPE_CHECKING

from shards.commands.extras import missing_extras_explained

if TYPE_CHECKING:
    from pipelines.api import Built, Estimated, build, estimate

__all__ = ["Built", "Estimated", "build", "estimate"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with missing_extras_explained():
        from pipelines import api  # noqa: PLC0415  it takes a second to import
    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
