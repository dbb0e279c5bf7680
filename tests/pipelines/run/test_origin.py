import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from pipelines.corpus.options import DATASET, SEGMENTS, Options, semantic
from pipelines.quality import Quality
from pipelines.quality.selection import parse_selection
from pipelines.run.origin import bounds_as_written, thresholds_of
from pipelines.wudao import WudaoOptions
from shards import UserError

SPECS = ("gopher+glm", "zh=fineweb2-zh", "ja=none")


def manifest(options: Options, **facts: Any) -> Any:
    """What stands for a manifest where its options alone are looked at."""
    quality = Quality.parse(options.quality, options.threshold)
    told = {"quality": {"profiles": sorted(options.quality), "bounds": quality.describe()}, **facts}
    stored = semantic(options, told, decides=(SEGMENTS, DATASET))
    return SimpleNamespace(options=json.loads(json.dumps(stored)))


@for_all(
    st.permutations(
        [
            "gopher.min_words=30",
            "en:gopher.min_words=40.5",
            "zh:fineweb2-zh.max_top_2gram=off",
            "glm.min_chars=1e-7",
            "de:glm.min_chars=7",
        ]
    )
)
def test_bounds_are_written_so_that_they_mean_what_they_meant(overrides: list[str]) -> None:
    before = Quality(parse_selection(SPECS, overrides)).describe()
    written = bounds_as_written(before)
    assert Quality(parse_selection(SPECS, written)).describe() == before
    assert Quality(parse_selection(SPECS, sorted(overrides))).describe().keys() == before.keys()


def test_overrides_stand_on_top_of_the_dataset_s_own() -> None:
    made = manifest(WudaoOptions(quality=SPECS, threshold=("gopher.min_words=30",)))
    found = thresholds_of(made, ["en:gopher.max_words=900", "glm.min_chars=off"])
    bounds = {rule.threshold: rule.bound for rule in found.rules("en")}
    assert (bounds["min_words"], bounds["max_words"]) == (30, 900)
    assert bounds["min_chars"] != bounds["min_chars"], "off is NaN"
    assert (found.group("en"), found.group("fr"), found.group("zh")) == ("en", "*", "zh")
    assert found.rules("ja") == ()
    assert found.wants("zh")
    assert not found.wants("fr")


def test_bounds_of_scorers_are_thresholds_like_any_other() -> None:
    bounds = {"max_hq": None, "min_hq": 0.4}
    made = manifest(WudaoOptions(quality=("gopher",), classifier=("m.bin:hq>=0.4",)))
    made.options["classifier"] = {"zh": {"models": {"__label__hq": "ff"}, "bounds": bounds}}
    now, then = thresholds_of(made), thresholds_of(made, ["zh:classifier.min_hq=0.2"])
    assert "classifier-low-hq" in now.reasons
    assert [rule.bound for rule in now.rules("zh") if rule.metric == "classifier.hq"][1:] == [0.4]
    assert [rule.bound for rule in then.rules("zh") if rule.metric == "classifier.hq"][1:] == [0.2]
    assert all(rule.metric.startswith("gopher.") for rule in now.rules("en"))
    told = (
        r"perplexity is no quality profile, but a model: .*measured gopher@paper, zh=.*classifier"
    )
    with pytest.raises(UserError, match=told):
        thresholds_of(made, ["perplexity.max_value=3"])
