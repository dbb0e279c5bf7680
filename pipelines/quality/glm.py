"""The rule of GLM's corpora: a text has more than 100 characters."""

from pipelines.quality.batch import Column, TextBatch
from pipelines.quality.profile import Bounds, Profile, Threshold


def _measure(batch: TextBatch, _: Bounds) -> tuple[TextBatch, tuple[Column]]:
    return batch, (batch.texts.lengths,)


PROFILES = (
    Profile(
        family="glm",
        alias=True,
        metrics=("chars",),
        thresholds=(
            Threshold(
                "min_chars",
                101,
                "few-chars",
                "minimum number of characters",
                "THUDM/GLM, data_utils/corpora.py (4f61ed7)",
            ),
        ),
        measure_batch=_measure,
    ),
)
