"""The step that measures texts and judges them by their metrics."""

from collections.abc import Collection, Sequence
from functools import reduce
from operator import or_

import pyarrow as pa

from pipelines.corpus.code import USER_CODE
from pipelines.corpus.languages import LANGUAGES, parse_languages
from pipelines.quality import QualityRules
from pipelines.quality.catalog import SCORERS
from pipelines.quality.selection import EVERY_LANGUAGE, Labels, merge_selections, overrides_for
from pipelines.segments.rows import FilterResult
from pipelines.steps.classifier import ClassifierScorer
from pipelines.steps.perplexity import PerplexityScorer
from pipelines.steps.scorer import Scorer
from pipelines.steps.step import Step, finish_filter, replace_texts

_FIRST_TEXT = (
    "- Cited facts [1] [2]: no sentence is like this one. He said so... 'It is.' \"No.\"\n\n\n"
    f"And he can’t see www.example.com/a-b?c, hi :) {'x' * 1001}! 真的吗？当然……黄河在中国。"
)
"""A text that needs every kernel of the rules."""


def load_scorers(
    classifier: Sequence[str] = (),
    perplexity: Sequence[str] = (),
    thresholds: Sequence[str] = (),
) -> tuple[Scorer, ...]:
    """Return the scorers that flags name, in the order of catalog.SCORERS.

    Args:
        classifier: The values of --classifier.
        perplexity: The values of --perplexity.
        thresholds: The values of --threshold; bounds of profiles are ignored.

    Raises:
        UserError: A scorer cannot be loaded.
    """
    of_classifier, of_perplexity = (overrides_for(family, thresholds) for family in SCORERS)
    return (
        *([ClassifierScorer(classifier, of_classifier)] if classifier or of_classifier else []),
        *([PerplexityScorer(perplexity, of_perplexity)] if perplexity or of_perplexity else []),
    )


class QualityFilter(Step):
    """Adds the metrics of the rules for each text's language; drops texts that break a rule.

    Every text gets all its metrics, even if it breaks a rule or its language is uncertain, so that
    verdicts under other bounds can be computed from the audit table.
    """

    name = "quality"
    needs = ("prompt", "text", "language")

    def __init__(
        self,
        rules: Sequence[str],
        *,
        thresholds: Sequence[str] = (),
        scorers: Sequence[Scorer] = (),
        labels: Labels = LANGUAGES,
    ) -> None:
        """Make the step.

        Args:
            rules: The values of --quality.
            thresholds: The values of --threshold, which replace published bounds.
            scorers: The scorers of the texts that the profiles pass on, in order of application.
            labels: The languages that may be named; None allows any.

        Raises:
            UserError: See QualityRules.parse.
        """
        profiles = QualityRules.parse(rules, overrides=thresholds, labels=labels)
        models = (scorer.selection for scorer in scorers)
        self.quality = QualityRules(reduce(merge_selections, models, profiles.selection))
        self.reasons = self.quality.all_reasons
        self.fields = self.quality.fields
        code = {USER_CODE: profiles.custom_code} if profiles.custom_code else {}
        described = {"profiles": sorted(rules), "bounds": profiles.describe(), **code}
        self.fingerprints = reduce(
            or_, (dict(scorer.fingerprints) for scorer in scorers), {"quality": described}
        )
        library_versions = (dict(scorer.library_versions) for scorer in scorers)
        self.library_versions = reduce(or_, library_versions, dict(profiles.library_versions))

    def __call__(self, batch: pa.RecordBatch) -> FilterResult:
        """Add the metrics, float32, null for texts whose language does not have the rule."""
        judged = self.quality.judge(batch["text"].to_pylist(), batch["language"].to_pylist())
        batch = replace_texts(batch, "text", judged.texts, changed=judged.changed)
        for field in self.fields:
            column = pa.array(judged.metrics[field.name], from_pandas=True)
            batch = batch.append_column(field.name, column)
        reasons = pa.array(judged.reasons, pa.string())
        return finish_filter(batch, reasons, measure_only=self.measure_only)

    def check_labels(self, labels: Collection[str]) -> None:
        """Check that the language model has a label for each language with its own rules.

        Raises:
            UserError: A label is missing; the message names the nearest labels.
        """
        named = {*self.quality.selection} - {EVERY_LANGUAGE}
        if named:
            parse_languages(named, labels)

    def prepare(self, languages: Sequence[str]) -> None:
        """Load and compile everything that the first texts of these languages need."""
        self.quality.judge([_FIRST_TEXT] * len(languages), languages)
