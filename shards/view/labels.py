"""Names and sentences of the pages in English and Chinese, read from templates/labels.json.

The report of a run and the viewer share them, so that both use the same terms.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class Words(NamedTuple):
    """The same words in both languages."""

    en: str
    zh: str


@cache
def _labels() -> Mapping[str, Mapping[str, Any]]:
    path = files("shards.view").joinpath("templates", "labels.json")
    labels: Mapping[str, Mapping[str, Any]] = json.loads(path.read_text("utf-8"))
    return labels


def chinese(name: str) -> str:
    """Return the Chinese label of a name, or the name itself if it comes from a dataset."""
    return str(_labels()["names"].get(name, name))


def reason_words(reason: str) -> Words | None:
    """Return the sentence that explains why a record was dropped; None for a custom reason.

    The reasons of quality rules begin with the profile: gopher-few-words means few-words.
    """
    exact = _labels()["reasons"].get(reason)
    return Words(*exact) if exact else _by_end("rules", reason, "-")


def metric_words(metric: str) -> Words:
    """Return the words for a metric, whose name may begin with a profile: gopher.words."""
    return _by_end("metrics", metric, ".") or Words(metric, metric)


def _by_end(table: str, name: str, separator: str) -> Words | None:
    """Return the entry of a table for the longest suffix of a name that has an entry."""
    parts = name.split(separator)
    ends = (separator.join(parts[first:]) for first in range(len(parts)))
    found = next((_labels()[table][end] for end in ends if end in _labels()[table]), None)
    return Words(*found) if found else None
