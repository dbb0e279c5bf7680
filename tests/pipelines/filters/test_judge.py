from pathlib import Path

from pipelines.filters.classifier import Classifier
from pipelines.filters.clean import Clean
from pipelines.filters.judge import Judge
from pipelines.filters.langid import Identify
from tests.pipelines.filters.batches import CHINESE, batch, check_same_rows
from tests.pipelines.quality.models import BAD, GOOD, write_classifier


def test_a_scorer_judges_what_the_profiles_pass_on(tmp_path: Path) -> None:
    model = write_classifier(tmp_path / "m.bin", {"hq": GOOD, "cc": BAD})
    scorer = Classifier([f"en={model}:hq>=0.5"])
    # c4 takes out the line that does not end a sentence.
    text = f"{GOOD[0]}. {GOOD[1]}. {GOOD[0]}.\n{BAD[0]} {BAD[1]}"
    cleaned = Clean()(batch(text, f"{BAD[1]}. {BAD[0]}. {BAD[1]}.", CHINESE * 3)).batch
    rows = Identify(("en", "zh"), threshold=0.0)(cleaned).batch
    judge = Judge(("en=c4",), thresholds=("c4.min_sentences=1",), scorers=(scorer,))
    verdict = judge(rows)
    check_same_rows(verdict, rows)
    assert verdict.reasons.to_pylist() == [None, "classifier-low-hq", None]
    passed_on = verdict.batch["text"].to_pylist()[0]
    assert passed_on == text.partition("\n")[0]
    scores = verdict.batch["classifier.hq"].to_pylist()
    assert scores[0] == scorer.score([passed_on], ["en"])["classifier.hq"][0]
    assert scores[2] is None
    assert [field.name for field in judge.fields][-1] == "classifier.hq"
    assert judge.facts.keys() == {"quality", "classifier"}
    assert "classifier-low-hq" in judge.reasons
