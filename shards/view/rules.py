"""Reads the rules of the last run from report.json and checks whether a record breaks a rule."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from shards.manifest import REPORT
from shards.storage.files import json_errors_explained, read_json, size_if_there
from shards.view.viewer import Viewer

OTHER_LANGUAGES = "*"
_THRESHOLD = "language_threshold"
"""The option that sets the minimum score of a language."""


class ReportedRule(NamedTuple):
    """A bound on a metric."""

    language: str
    """The language, or OTHER_LANGUAGES for all languages that have no separate rules."""
    metric: str
    comparison: str
    """"<" or ">": a record is dropped if its value is below or above the bound."""
    bound: float
    reason: str

    def breaks(self, values: Mapping[str, Any]) -> bool:
        """Return whether a record with these values breaks the rule."""
        value = values.get(self.metric)
        if value is None:
            return False
        return bool(value < self.bound if self.comparison == "<" else value > self.bound)


def rules_of(viewer: Viewer, language: str = "") -> list[ReportedRule]:
    """Return the rules for a language, or all rules.

    Raises:
        DamageError: report.json is damaged.
    """
    found = []
    if threshold := viewer.dataset.manifest.options.get(_THRESHOLD):
        found = [ReportedRule(OTHER_LANGUAGES, "score", "<", float(threshold), "language-score")]
    path = viewer.dataset.directory / REPORT
    with json_errors_explained(path, "build the dataset again, or delete it"):
        rules = read_json(path).get("rules", {}) if size_if_there(path) >= 0 else {}
        own = language if language in rules else OTHER_LANGUAGES
        for each in [own] if language else sorted(rules):
            found += [
                ReportedRule(
                    each, rule["metric"], rule["comparison"], rule["bound"], rule["reason"]
                )
                for rule in rules.get(each, ())
            ]
    return found
