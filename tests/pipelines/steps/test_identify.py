import numpy as np
import pyarrow as pa

from pipelines.steps.identify import Identify
from tests.pipelines.steps.batches import CHINESE, ENGLISH, JAPANESE, batch, check_same_rows


def test_langid_keeps_the_languages_asked_for() -> None:
    before = batch(CHINESE, ENGLISH, JAPANESE)
    verdict = Identify(("zh", "en"), threshold=0.5)(before)
    check_same_rows(verdict, before)
    assert verdict.batch["language"].to_pylist() == ["zh", "en", "ja"]
    assert verdict.reasons.to_pylist() == [None, None, "language"]
    scores = verdict.batch["score"]
    assert scores.type == pa.float32()
    assert all(0.5 <= score <= 1 for score in scores.to_pylist())


def test_langid_drops_scores_below_the_threshold() -> None:
    score = Identify(("zh", "en"), threshold=0.5)(batch(ENGLISH)).batch["score"][0].as_py()
    for threshold, reason in (
        (score, None),
        (np.nextafter(np.float32(score), 2), "language-score"),
    ):
        verdict = Identify(("zh", "en"), threshold=float(threshold))(batch(ENGLISH))
        assert verdict.reasons.to_pylist() == [reason]


def test_all_languages_are_judged_by_their_score_alone() -> None:
    verdict = Identify(("all",), threshold=0.5)(batch(JAPANESE, CHINESE, " "))
    assert verdict.batch["language"].to_pylist() == ["ja", "zh", "und"]
    assert verdict.reasons.to_pylist() == [None, None, "language-score"]


def test_what_is_to_be_measured_first_is_marked() -> None:
    identify = Identify(("zh", "en"), threshold=1.0)
    identify.marks = True
    verdict = identify(batch(CHINESE, JAPANESE, " "))
    assert verdict.reasons.to_pylist() == [None, "language", "language"]
    assert verdict.batch["marked"].to_pylist() == ["language-score", None, None]
