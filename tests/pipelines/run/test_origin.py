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


def test_a_dataset_without_profiles_has_no_thresholds() -> None:
    with pytest.raises(UserError, match="measured no quality profile"):
        thresholds_of(manifest(WudaoOptions(quality=("none",))), ["glm.min_chars=3"])


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
        classifier=("m.bin:hq>=0.4", "zh=/data/m.bin:hq<=0.9", "in/m.bin:hq"),
        perplexity=("zh=a.arpa+b.model<=cut.csv:head", "en=/a.arpa+b.model<=9"),
    )
    facts = {"tokenizer": "0", "lid_model": "1", "decontaminate": "2", "quality": {}}
    facts |= {"classifier": {"*": {}}, "perplexity": {"zh": {}}}
    told = given_paths(options, facts)
    (tmp_path / "report.json").write_text(json.dumps({"given": told}))
    monkeypatch.chdir("/")
    del facts["quality"]
    found = recorded_options(tmp_path, manifest(options, **facts), WudaoOptions)
    assert found["tokenizer"] == f"sentencepiece:{tmp_path}/my.model"
    assert found["lid_model"] == ""
    assert found["decontaminate"] == (
        f"{tmp_path}/list.txt", "s3://bucket/other.txt", "gone.txt"
    )  # fmt: skip
    assert found["classifier"] == (
        f"{tmp_path}/m.bin:hq>=0.4", "zh=/data/m.bin:hq<=0.9", f"{tmp_path}/in/m.bin:hq"
    )  # fmt: skip
    assert found["perplexity"] == (
        f"zh={tmp_path}/a.arpa+{tmp_path}/b.model<={tmp_path}/cut.csv:head",
        f"en=/a.arpa+{tmp_path}/b.model<=9",
    )
