import ftfy

from pipelines.filters.clean import CONFIG
from pipelines.steps.clean import Clean
from tests.pipelines.steps.batches import CHINESE, batch, check_same_rows, with_prompts


def test_clean_repairs_and_says_where() -> None:
    before = batch(CHINESE, "Tom &amp; Jerry", "cafÃ©", "", " \n　")
    verdict = Clean()(before)
    check_same_rows(verdict, before)
    assert verdict.batch["text"].to_pylist() == [CHINESE, "Tom & Jerry", "café", "", " \n　"]
    assert verdict.batch["repaired"].to_pylist() == [False, True, True, False, False]
    assert verdict.reasons.to_pylist() == [None, None, None, "empty", "empty"]


def test_clean_drops_what_the_repair_empties() -> None:
    text = "\x01\x02"
    assert ftfy.fix_text(text, CONFIG) == ""
    verdict = Clean()(batch(text))
    assert verdict.reasons.to_pylist() == ["empty"]
    assert verdict.batch["repaired"].to_pylist() == [True]


def test_prompts_are_repaired_too() -> None:
    verdict = Clean()(with_prompts((CHINESE, CHINESE), ("Tom &amp; Jerry", "")))
    assert verdict.batch["prompt"].to_pylist() == ["Tom & Jerry", ""]
    assert verdict.batch["repaired"].to_pylist() == [True, False]
