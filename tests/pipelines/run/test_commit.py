import logging
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.corpus.recipe import SAMPLE
from pipelines.inputs.files import match_inputs
from pipelines.run.commit import clean_up, commit, forget_phases, input_entries
from shards import Dataset
from shards.manifest import InputEntry
from shards.storage.files import read_json
from tests.pipelines.mapped import CONTENT, record, splits


def test_inputs_have_the_checksums_of_their_splits_in_order(file: Path) -> None:
    records = [record(split, crc32c=7 + number) for number, split in enumerate(splits(file))]
    other = [replace(split, source="t") for split in records[:1]]
    assert input_entries([*records, *other]) == (
        InputEntry(source="s", path="a.json", bytes=len(CONTENT), crc32c=(7, 8, 9)),
        InputEntry(source="t", path="a.json", bytes=len(CONTENT), crc32c=(7,)),
    )


def test_the_manifest_comes_last(
    reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = Dataset.open(reference).manifest
    report = read_json(reference / "report.json")
    files = match_inputs([str(SAMPLE)], pattern="*.json", default_name="wudao")[:1]

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr("pipelines.run.commit.write_page", fail)
        with pytest.raises(ZeroDivisionError):
            commit(tmp_path / "out", manifest, inputs=files, run=report)
    assert not (tmp_path / "out" / "manifest.json").exists()
    commit(tmp_path / "out", manifest, inputs=files, run=report)
    assert read_json(tmp_path / "out" / "manifest.json") == read_json(reference / "manifest.json")
    (entry,) = read_json(tmp_path / "out" / "inputs.json")
    (first, *_) = manifest.generations[0].inputs
    assert (entry["source"], entry["path"]) == (first.source, first.path)
    assert entry["crc32c"] == [*first.crc32c]
    assert (entry["from"], entry["mtime_ns"]) == (files[0].path, files[0].mtime_ns)
    assert (tmp_path / "out" / "report.html").exists()


def left(work: Path) -> list[str]:
    return sorted(path.relative_to(work).as_posix() for path in work.rglob("*") if path.is_file())


def test_clean_up_takes_what_a_run_made_and_nothing_else(
    reference: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = Path(shutil.copytree(reference / ".work", tmp_path / "whole"))
    work = Path(shutil.copytree(whole, tmp_path / "out" / ".work"))
    clean_up(whole)
    assert not whole.exists()
    theirs = ["map/thesis.txt", "merge/notes.json", "thesis.txt"]
    for name in theirs:
        (work / name).write_text("mine")
    forget_phases(work)
    assert {name.partition("/")[0] for name in left(work)} == {
        "map",
        "progress",
        "merge",
        *theirs[2:],
    }
    assert set(theirs) < set(left(work))
    with caplog.at_level(logging.INFO, "corpusmill"):
        clean_up(work)
    assert left(work) == theirs
    assert (
        ".work stays: 3 files in it are of no run, the first of them: map/thesis.txt" in caplog.text
    )
