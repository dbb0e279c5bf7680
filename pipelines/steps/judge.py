"""Texts are measured, and judged by their metrics."""

from collections.abc import Sequence

import pyarrow as pa

from pipelines.quality import Quality
from pipelines.segments.rows import Verdict
from pipelines.steps.identify import MARKED
from pipelines.steps.step import Step, replaced


class Judge(Step):
    """Adds the metrics of the rules of each text's language; drops what breaks a rule.

    Every text gets all its metrics, whichever rule it breaks and however unsure its language, so
    that verdicts under other bounds follow from the audit table.
    """

    name = "quality"

    def __init__(
        self, rules: Sequence[str], *, thresholds: Sequence[str] = (), compiled: bool = False
    ) -> None:
        """Make the step.

        Args:
            rules: Profiles of languages, as --quality.
            thresholds: Other bounds than the published ones, as --threshold.
            compiled: Use native loops where there are any; the results are the same.

        Raises:
            UserError: As Quality.parse.
        """
        self.quality = Quality.parse(rules, overrides=thresholds, compiled=compiled)
        self.reasons = self.quality.all_reasons
        self.fields = self.quality.fields
        bounds = self.quality.describe()
        self.facts = {"quality": {"profiles": sorted(rules), "bounds": bounds}}
        self.engines = self.quality.engines

    def __call__(self, batch: pa.RecordBatch) -> Verdict:
        """Add the metrics, float32, null where a language has no such rule."""
        texts = batch["text"].to_pylist()
        judged = self.quality.judge(texts, batch["language"].to_pylist())
        batch = replaced(batch, "text", judged.texts, changed=judged.changed)
        for field in self.fields:
            values = judged.metrics[field.name]
            batch = batch.append_column(field.name, pa.array(values, from_pandas=True))
        reasons: Sequence[str | None] = judged.reasons
        if MARKED in batch.schema.names:
            marks = batch[MARKED].to_pylist()
            batch = batch.drop_columns([MARKED])
            reasons = [mark or broken for mark, broken in zip(marks, reasons, strict=True)]
        return Verdict(batch, pa.array(reasons, pa.string()))

    def prepare(self, languages: Sequence[str]) -> None:
        """Compile the measures of languages, which else happens with their first texts."""
        self.quality.judge([""] * len(languages), languages)
