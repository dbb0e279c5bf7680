from pipelines.steps.clean import Clean
from pipelines.steps.identify import Identify
from pipelines.steps.judge import Judge
from pipelines.steps.step import split_verdict
from tests.pipelines.steps.batches import CHINESE, ENGLISH, JAPANESE, batch, check_same_rows


def test_what_is_in_a_language_asked_for_is_measured_however_unsure() -> None:
    identify = Identify(("zh", "en"), threshold=0.99, measured=True)
    judge = Judge(("zh=glm", "en=gopher"))
    found, others = split_verdict(
        identify(Clean()(batch(CHINESE, CHINESE * 3, ENGLISH, JAPANESE * 5)).batch)
    )
    assert others.batch["language"].to_pylist() == ["ja"]
    verdict = judge(found)
    check_same_rows(verdict, found)
    assert "unsure" not in verdict.batch.schema.names
    assert verdict.batch["language"].to_pylist() == ["zh", "zh", "en"]
    chars = verdict.batch["glm.chars"].to_pylist()
    assert chars == [len(CHINESE), 3 * len(CHINESE), None]
    words = verdict.batch["gopher.words"].to_pylist()
    assert words == [None, None, len(ENGLISH.split())]
    low = [score < 0.99 for score in verdict.batch["score"].to_pylist()]
    assert any(low)
    own = ["glm-few-chars", None, "gopher-few-words"]
    expected = [
        "language-score" if unsure else reason for unsure, reason in zip(low, own, strict=True)
    ]
    assert verdict.reasons.to_pylist() == expected
