"""Steps as transforms: what they keep, drop and count."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipelines.engine import beam
from pipelines.filters.clean import Clean as CleanStep
from pipelines.transforms import (
    Clean,
    Decontaminate,
    DropAddresses,
    IdentifyLanguage,
    JudgeQuality,
    MaskPersonalData,
    OwnFilter,
    Steps,
    Tokenize,
)
from pipelines.transforms.model import Model
from shards.errors import UserError
from tests.pipelines.filters.batches import CHINESE, ENGLISH, JAPANESE, batch
from tests.pipelines.quality.models import BAD, GOOD, write_classifier
from tests.pipelines.transforms.pipes import TOKENIZER, batches, running

TEXTS = (CHINESE, ENGLISH, JAPANESE, " \n", f"{ENGLISH} Write to someone@gmail.com.")


def test_each_transform_hands_on_what_its_step_keeps_and_says_why_it_drops(tmp_path: Path) -> None:
    benchmark = tmp_path / "benchmark.txt"
    benchmark.write_text(ENGLISH)
    with running() as (pipeline, seen):
        clean = batches(pipeline, batch(*TEXTS)) | Clean()
        seen.watch("empty", clean.dropped)
        chosen = clean.kept | IdentifyLanguage("zh", "en")
        seen.watch("language", chosen.dropped)
        judged = chosen.kept | JudgeQuality("en=gopher", thresholds=("gopher.min_words=3",))
        seen.watch("judged", judged.kept)
        masked = chosen.kept | MaskPersonalData()
        seen.watch("masked", masked.kept)
        apart = chosen.kept | Decontaminate(str(benchmark))
        seen.watch("contaminated", apart.dropped)
        tokens = apart.kept | Tokenize(TOKENIZER)
        seen.watch("tokens", tokens.kept)
        seen.watch("failed", tokens.quarantined)
    assert [row["reason"] for row in seen.rows("empty")] == ["empty"]
    assert [(row["text"], row["reason"]) for row in seen.rows("language")] == [
        (JAPANESE, "language")
    ]
    measured = [name for name in seen.rows("judged")[0] if name.startswith("gopher.")]
    assert len(measured) > 3
    (mail,) = [row for row in seen.rows("masked") if "Write" in row["text"]]
    assert "someone@" not in mail["text"]
    assert mail["pii.email"] == 1
    assert [row["reason"] for row in seen.rows("contaminated")] == ["contaminated"] * 2
    (kept,) = seen.rows("tokens")
    assert kept["text"] == CHINESE
    assert len(kept["tokens"]) > 5
    assert not seen.rows("failed")


def test_steps_in_one_go_give_what_they_give_one_after_another() -> None:
    with running() as (pipeline, seen):
        start = batches(pipeline, batch(*TEXTS))
        both = start | Steps(Clean(), IdentifyLanguage("zh"))
        seen.watch("kept at once", both.kept)
        seen.watch("dropped at once", both.dropped)
        clean = start | Clean()
        chosen = clean.kept | IdentifyLanguage("zh")
        seen.watch("kept", chosen.kept)
        seen.watch("empty", clean.dropped)
        seen.watch("others", chosen.dropped)
    assert seen.rows("kept at once") == seen.rows("kept")
    reasons = [row["reason"] for row in seen.rows("dropped at once")]
    assert sorted(reasons) == ["empty", "language", "language", "language"]
    assert len(seen.rows("empty")) + len(seen.rows("others")) == len(reasons)


def test_records_are_counted_by_reason() -> None:
    pipeline = beam.Pipeline(runner=beam.FnApiRunner())
    _ = batches(pipeline, batch(*TEXTS)) | Steps(Clean(), IdentifyLanguage("zh"))
    result = pipeline.run()
    counters = {
        counter.key.metric.name: counter.committed
        for counter in result.metrics().query()["counters"]
        if counter.key.metric.namespace == "corpusmill"
    }
    assert counters == {
        "records kept": 1,
        "records dropped": 4,
        "records dropped (empty)": 1,
        "records dropped (language)": 3,
    }


def test_a_classifier_judges_with_the_rules_or_without(tmp_path: Path) -> None:
    model = write_classifier(tmp_path / "m.bin", {"hq": GOOD, "cc": BAD})
    transform = JudgeQuality("none", classifier=[f"en={model}:hq>=0.5"])
    assert [field.name for field in transform.fields] == ["classifier.hq"]
    with running() as (pipeline, seen):
        judged = batches(pipeline, batch(*GOOD, *BAD)) | IdentifyLanguage("en")
        judged = judged.kept | transform
        seen.watch("kept", judged.kept)
        seen.watch("dropped", judged.dropped)
    assert {row["text"] for row in seen.rows("kept")} == {*GOOD}
    assert {row["reason"] for row in seen.rows("dropped")} == {"classifier-low-hq"}
    with pytest.raises(UserError, match='no label "good"'):
        JudgeQuality("none", classifier=[f"{model}:good>=0.5"])


def test_a_mistake_is_told_where_the_pipeline_is_made(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="klingon"):
        IdentifyLanguage("klingon")
    with pytest.raises(UserError, match="sentencepiece:nowhere"):
        Tokenize("sentencepiece:nowhere.model")
    with pytest.raises(UserError, match="no-such"):
        JudgeQuality("en=no-such")
    with pytest.raises(UserError, match=r"blocked\.txt"):
        DropAddresses(str(tmp_path / "blocked.txt"))
    with pytest.raises(UserError, match=r"Steps\(\) has no step"):
        Steps()


def test_a_batch_without_what_a_step_needs_is_refused() -> None:
    with (
        pytest.raises(Exception, match=r"a batch has no column 'language', which quality needs"),
        running() as (pipeline, _),
    ):
        _ = batches(pipeline, batch(ENGLISH)) | JudgeQuality("en=gopher")


def test_a_process_loads_a_model_once_and_refuses_another() -> None:
    (made,) = Tokenize(TOKENIZER).models
    assert made.loaded() is made.loaded()
    other = replace(made, identity="other", known={"tokenizer": "another"})
    with pytest.raises(UserError, match=r"this worker has tokenizer \w{64}, the pipeline was made"):
        other.loaded()


def test_a_process_of_another_library_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    (clean,) = Clean().models
    other = replace(clean, identity="clean elsewhere")
    monkeypatch.setattr("pipelines.map.mapper.version", lambda _: "0.1")
    with pytest.raises(UserError, match=r"this worker has ftfy 0\.1, the pipeline was made with "):
        other.loaded()


@pytest.mark.parametrize(
    ("asked", "compiled_before", "used"),
    [(None, True, True), (None, False, False), (True, False, True), (False, True, False)],
)
def test_native_loops_are_used_where_they_are_compiled_or_asked_for(
    monkeypatch: pytest.MonkeyPatch, asked: bool | None, compiled_before: bool, used: bool
) -> None:
    made: list[bool] = []

    def make(*, compiled: bool = False) -> CleanStep:
        made.append(compiled)
        return CleanStep()

    monkeypatch.setattr("pipelines.compiled.kept", lambda _: compiled_before)
    monkeypatch.setattr("pipelines.compiled.usable", lambda: False)
    Model(make=make, parts=("texts",), native=asked).loaded()
    assert made == [used]


def test_a_filter_of_ones_own_is_a_transform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_transform_here.py").write_text(
        "def no_river(batch):\n"
        "    return ['river' if 'bridge' in t else None for t in batch['text'].to_pylist()]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with running() as (pipeline, seen):
        judged = batches(pipeline, batch(*TEXTS)) | OwnFilter("own_transform_here:no_river")
        seen.watch("kept", judged.kept)
        seen.watch("dropped", judged.dropped)
    assert [row["reason"] for row in seen.rows("dropped")] == ["no_river:river"] * 2
    assert {row["text"] for row in seen.rows("kept")} == {CHINESE, JAPANESE, " \n"}
    with pytest.raises(UserError, match="holds no 'no_sea'"):
        OwnFilter("own_transform_here:no_sea")


def test_what_does_not_fit_together_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_bounds_here.py").write_text(
        "class Long:\n    metrics = ('chars',)\n    bounds = {'min_chars': 3}\n"
        "    def __call__(self, batch):\n"
        "        return {'chars': [len(t) for t in batch['text'].to_pylist()]}\n"
        "def tokenize(batch): return [None] * batch.num_rows\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    pipeline = beam.Pipeline(runner=beam.FnApiRunner())
    start = batches(pipeline, batch(*TEXTS))
    clean = start | Clean()
    with pytest.raises(UserError, match=r"MaskPersonalData was given all outputs .*\.kept"):
        _ = clean | MaskPersonalData()
    with pytest.raises(UserError, match="a filter cannot be called 'tokenize'"):
        OwnFilter("own_bounds_here:tokenize")
    with pytest.raises(UserError, match="its place is where it is put, so leave clean= out"):
        OwnFilter("clean=own_bounds_here:Long")
    for made in (IdentifyLanguage, JudgeQuality, DropAddresses, Decontaminate):
        message = rf"{made.__name__}\(\['zh', 'en'\]\): give names one by one, as in"
        with pytest.raises(UserError, match=message):
            made(["zh", "en"])  # type: ignore[arg-type]  # as people write it
    with pytest.raises(UserError, match=r"MaskPersonalData adds the column 'pii\.email', as MaskP"):
        Steps(MaskPersonalData(), Clean(), MaskPersonalData())
    with pytest.raises(UserError, match="Clean adds the column 'repaired', as Clean before it"):
        Steps(Clean(), Steps(Clean()))
    assert Steps(Clean(), JudgeQuality("en=gopher")).needs == ("prompt", "text", "language")
    both = Steps(IdentifyLanguage("en"), OwnFilter("own_bounds_here:Long"))
    assert both.needs == ("prompt", "text")
    with pytest.raises(Exception, match="a column 'repaired' to batches that have one"):
        _run_only(batch(*TEXTS), Clean(), Clean())
    with pytest.raises(Exception, match="no column 'language'"):
        _run_only(batch(*TEXTS), OwnFilter("own_bounds_here:Long"))


def _run_only(rows: pa.RecordBatch, *transforms: Any) -> None:
    pipeline = beam.Pipeline(runner=beam.FnApiRunner())
    kept = batches(pipeline, rows)
    for number, transform in enumerate(transforms):
        kept = (kept | f"{number}" >> transform).kept
    pipeline.run().wait_until_finish()
