import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from pipelines.corpus.options import DATASET, SEGMENTS, Options, semantic
from pipelines.pile import PileOptions
from pipelines.quality import Quality
from pipelines.quality.selection import parse_selection
from pipelines.run.origin import bounds_as_written, given_paths, recorded_options, thresholds_of
from pipelines.text import TextOptions
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


@pytest.mark.parametrize(
    ("quality", "overrides", "told"),
    [
        (SPECS, ["c4.min_sentences=3"], r"measured ja=|measured gopher@paper\+glm, zh=fineweb2-zh"),
        (("none",), ["glm.min_chars=3"], "measured no quality profile"),
        (("en=c4",), ["c4.min_line_words=4"], "decides how a text is read"),
    ],
)
def test_what_was_not_measured_is_refused(
    quality: tuple[str, ...], overrides: list[str], told: str
) -> None:
    made = manifest(WudaoOptions(quality=quality))
    with pytest.raises(UserError, match=told):
        thresholds_of(made, overrides)


def test_profiles_of_another_version_are_told() -> None:
    made = manifest(WudaoOptions(quality=("glm",)))
    made.options["quality"]["bounds"]["*"][0]["bounds"]["max_words"] = 7
    with pytest.raises(UserError, match="made by a version whose profiles were others"):
        thresholds_of(made)
    del made.options["quality"]
    with pytest.raises(UserError, match="a version without quality rules"):
        thresholds_of(made)


@pytest.mark.parametrize(
    "options",
    [
        WudaoOptions(title="never", quality=SPECS, threshold=("glm.min_chars=7",), seed=3),
        PileOptions(deny=("ArXiv",), keep=("FreeLaw=0.5",), languages=("en",), sample=0.5),
        TextOptions(text_field="body", provenance=("from=x", "y"), keep_dropped=True, shards=4),
        WudaoOptions(
            quality=("gopher",), threshold=("en:gopher.min_words=9", "gopher.min_words=8")
        ),
    ],
)
def test_options_come_back_as_they_were(options: Options, tmp_path: Path) -> None:
    made = manifest(options, tokenizer="0" * 64, lid_model="1" * 64)
    found = type(options)(**recorded_options(tmp_path, made, type(options)))
    again = manifest(found, tokenizer="0" * 64, lid_model="1" * 64)
    assert again.options["quality"]["bounds"] == made.options["quality"]["bounds"]
    assert {**again.options, "threshold": ()} == {**made.options, "threshold": ()}
    assert found.tokenizer == found.lid_model == ""


def test_files_are_named_as_they_lay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my.model").write_text("")
    (tmp_path / "list.txt").write_text("")
    monkeypatch.chdir(tmp_path)
    options = WudaoOptions(
        tokenizer="sentencepiece:my.model",
        decontaminate=("list.txt", "s3://bucket/other.txt", "gone.txt"),
    )
    facts = {"tokenizer": "0", "lid_model": "1", "decontaminate": "2", "quality": {}}
    told = given_paths(options, facts)
    assert set(told) == {"folder", "tokenizer", "lid_model", "decontaminate"}
    (tmp_path / "report.json").write_text(json.dumps({"given": told}))
    monkeypatch.chdir("/")
    made = manifest(options, tokenizer="0", lid_model="1", decontaminate="2")
    found = recorded_options(tmp_path, made, WudaoOptions)
    assert found["tokenizer"] == f"sentencepiece:{tmp_path}/my.model"
    assert found["lid_model"] == ""
    assert found["decontaminate"] == (
        f"{tmp_path}/list.txt", "s3://bucket/other.txt", "gone.txt"
    )  # fmt: skip


def test_models_of_scorers_are_named_as_they_lay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = WudaoOptions(
        classifier=("m.bin:hq>=0.4", "zh=/data/m.bin:hq<=0.9", "in/m.bin:hq"),
        perplexity=("zh=a.arpa+b.model<=cut.csv:head", "en=/a.arpa+b.model<=9"),
    )
    facts = {"classifier": {"*": {}}, "perplexity": {"zh": {}}}
    told = given_paths(options, {*facts, "quality"})
    (tmp_path / "report.json").write_text(json.dumps({"given": told}))
    monkeypatch.chdir("/")
    made = manifest(options, **facts)
    assert made.options["classifier"] == {"*": {}}
    found = recorded_options(tmp_path, made, WudaoOptions)
    assert found["classifier"] == (
        f"{tmp_path}/m.bin:hq>=0.4", "zh=/data/m.bin:hq<=0.9", f"{tmp_path}/in/m.bin:hq"
    )  # fmt: skip
    assert found["perplexity"] == (
        f"zh={tmp_path}/a.arpa+{tmp_path}/b.model<={tmp_path}/cut.csv:head",
        f"en=/a.arpa+{tmp_path}/b.model<=9",
    )


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
