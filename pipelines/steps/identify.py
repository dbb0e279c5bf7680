"""The language of each text, and how sure that is."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.filters.langid import LANGUAGES, load_identifier, parse_languages
from pipelines.segments.rows import NAME, Verdict
from pipelines.steps.step import Step, settle

OTHER_LANGUAGE, UNSURE = "language", "language-score"


class Identify(Step):
    """Adds language and score; drops texts in other languages than asked for, or too unsure.

    If it marks, then the unsure ones.
    """

    name = "langid"
    reasons = (OTHER_LANGUAGE, UNSURE)

    def __init__(
        self,
        languages: Sequence[str],
        *,
        threshold: float,
        model: str = "",
        chars: int | str = 1024,
        compiled: bool = False,
    ) -> None:
        """Load the model.

        Args:
            languages: The model's labels of the languages to keep, or "all".
            threshold: Lowest score.
            model: A fastText model; "" for the installed one.
            chars: How many characters of a text are read, as --lid-chars.
            compiled: Use native loops where there are any; the results are the same.

        Raises:
            UserError: A language is unknown, or the model cannot be loaded.
        """
        self._threshold = np.float32(threshold)
        path = Path(model) if model else None
        self.identifier = load_identifier(path, chars=chars, compiled=compiled)
        labels = self.identifier.labels
        self.languages = None if "all" in languages else parse_languages(languages, labels)
        """The languages that are kept; None for all."""
        self.facts = {"lid_model": self.identifier.fingerprint}
        engine = self.identifier.engine
        if labels != LANGUAGES:  # each worker has a file of its own
            engine = f"{engine} with {self.identifier.fingerprint[:12]}"
        self.engines = {"langid": engine}

    def __call__(self, batch: pa.RecordBatch) -> Verdict:
        """Add `language` and `score`."""
        labels, scores = self.identifier.identify(batch["text"].to_pylist())
        low = scores < self._threshold
        reasons = [
            OTHER_LANGUAGE if self.languages is not None and label not in self.languages
            else UNSURE if unsure else None
            for label, unsure in zip(labels, low.tolist(), strict=True)
        ]  # fmt: skip
        found = pa.array(labels, pa.large_string()).cast(NAME)
        batch = batch.append_column("language", found).append_column("score", pa.array(scores))
        column = pa.array(reasons, pa.string())
        if not self.marks:
            return Verdict(batch, column)
        # What is in no language asked for is not measured.
        others = pc.equal(column, OTHER_LANGUAGE)
        nothing = pa.scalar(None, pa.string())
        marked = settle(batch, pc.if_else(others, nothing, column), marks=True).batch
        return Verdict(marked, pc.if_else(others, column, nothing))
