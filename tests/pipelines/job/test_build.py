"""The guarantees of a whole run: the sample in 36 files with duplicates, and 8 shards.

Guarantee: The same input, options and library versions give the same bytes, on any number of
workers.
"""

import gc
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.corpus import versions
from pipelines.corpus.spec import SAMPLE
from pipelines.job.build import build
from pipelines.steps.step_pipeline import StepPipeline
from shards import UserError
from tests.pipelines.privileges import without_privileges
from tests.pipelines.runs import MODULE, content, many_splits, page, shipped, small, write_wudao


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_workers_and_a_copy_of_the_corpus_elsewhere_make_the_same_bytes(
    reference: Path, sample: Path, tmp_path: Path, workers: int
):
    other = shutil.copytree(sample, tmp_path / "other name", copy_function=shutil.copyfile)
    shutil.copyfile(SAMPLE / "sample.model", other / "sample.model")
    made = tmp_path / "out"
    tokenizer = f"sentencepiece:{other / 'sample.model'}"
    build(MODULE, many_splits(made, other, workers=workers, tokenizer=tokenizer))
    assert json.loads((made / "report.json").read_text())["workers"] == workers
    assert shipped(made) == shipped(reference)


@pytest.mark.slow
def test_segments_of_several_batches_make_the_same_bytes(
    reference: Path, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pipelines.corpus.batcher.BATCH_RECORDS", 7)
    build(MODULE, many_splits(tmp_path / "out", sample))
    assert shipped(tmp_path / "out") == shipped(reference)


@pytest.mark.slow
def test_changed_versions_are_logged_and_only_then_work_is_redone(
    reference: Path,
    sample: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    output = tmp_path / "out"
    shutil.copytree(reference, output)
    before = versions.STAGES_VERSION
    caplog.set_level("INFO", logger="corpusmill")
    for changed in (False, True):
        caplog.clear()
        (output / "manifest.json").unlink()
        if changed:
            monkeypatch.setattr(versions, "STAGES_VERSION", 99)
        build(MODULE, many_splits(output, sample, keep_segments=True))
        logged = f"corpusmill stages ({before}, now 99) changed" in caplog.text
        assert logged == ("finished before" not in caplog.text) == changed


def test_models_are_freed_by_the_first_item_after_the_map(tmp_path: Path) -> None:
    build(MODULE, small(tmp_path / "out", SAMPLE))
    gc.collect()
    # `isinstance` would query all objects, some of which, in torch, would then warn.
    assert not [one for one in gc.get_objects() if type(one) is StepPipeline]


def test_unreadable_files_end_the_run_or_are_left_out_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    for source in ("one", "two"):
        write_wudao(tmp_path / source / "part-1.json", [page(n) for n in range(20)])
    specs = [f"{source}={tmp_path / source}" for source in ("one", "two")]
    whole = build(MODULE, small(tmp_path / "whole", *specs, dedup="none"))
    (tmp_path / "one" / "part-2.json").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "one" / "part-3.json")
    (tmp_path / "one" / "closed").mkdir(mode=0)
    options = small(tmp_path / "out", *specs, dedup="none")
    with without_privileges():
        with pytest.raises(UserError, match=r"^3 files or folders .*closed/ cannot be listed: "):
            build(MODULE, options)
        assert not options.output.exists()
        made = build(MODULE, replace(options, skip_unreadable=True))
    assert (content(tmp_path / "out"), made) == (content(tmp_path / "whole"), whole)
    assert "3 files or folders cannot be read and are left out: " in caplog.text
    report = json.loads((tmp_path / "out" / "report.json").read_bytes())
    assert [(entry["source"], entry["path"], entry["why"]) for entry in report["left_out"]][1:] == [
        ("one", "part-3.json", "is neither a file nor a folder"),
        ("one", "closed/", "cannot be listed: permission denied"),
    ]
    shown = (tmp_path / "out" / "report.html").read_text()
    assert "3 files or folders match but could not be read" in shown
