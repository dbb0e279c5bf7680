import logging
import shutil
from pathlib import Path

import pytest

from pipelines.run.commit import clean_up


def test_clean_up_takes_what_a_run_made_and_nothing_else(
    reference: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    work = Path(shutil.copytree(reference / ".work", tmp_path / ".work"))
    theirs = ["map/thesis.txt", "merge/notes.json", "thesis.txt"]
    for name in theirs:
        (work / name).write_text("mine")
    with caplog.at_level(logging.INFO, "corpusmill"):
        clean_up(work)
    left = [path.relative_to(work).as_posix() for path in work.rglob("*") if path.is_file()]
    assert sorted(left) == theirs
    assert "3 files in it are of no run, the first of them: map/thesis.txt" in caplog.text
    for name in theirs:
        (work / name).unlink()
    clean_up(work)
    assert not work.exists()
