"""Beam pipelines: raw corpora in, token shards out.

What is listed here is public. So are `pipelines.corpus` and `pipelines.quality`, of which corpora
and profiles of one's own are made (docs/own.md), and `pipelines.transforms` (docs/own.md).
All else may change without a word.
"""

from typing import TYPE_CHECKING

from shards.face import lazily

if TYPE_CHECKING:
    from pipelines.api import Built as Built
    from pipelines.api import Estimated as Estimated
    from pipelines.api import build as build
    from pipelines.api import estimate as estimate
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
