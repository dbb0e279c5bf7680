from pathlib import Path

from pipelines.steps.decontaminate import Decontaminate
from tests.pipelines.steps.batches import CHINESE, ENGLISH, batch


def test_benchmarks_in_texts_are_dropped_and_counted(tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text(f"{ENGLISH} And so it stayed.\n")
    decontaminate = Decontaminate([str(tmp_path / "test.txt")])
    verdict = decontaminate(batch(CHINESE, f"Once more: {ENGLISH}"))
    assert verdict.reasons.to_pylist() == [None, "contaminated"]
    hits = verdict.batch["contamination.ngrams"].to_pylist()
    assert hits[0] == 0 < hits[1]
    assert "decontaminate" in decontaminate.facts
