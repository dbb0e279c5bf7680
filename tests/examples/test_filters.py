"""Runs docs/examples/no_ads.py and own_model.py with the commands of docs/own.md."""

import json
import re
from pathlib import Path

import pytest

from tests.examples.test_web_pages import EXAMPLES
from tests.python import python

PAGE = EXAMPLES.parent / "own.md"


def said_by(*words: object, cwd: Path) -> str:
    """Run a command of the page in a folder with the examples, and return the output."""
    for name in ("no_ads.py", "own_model.py"):
        (cwd / name).write_text((EXAMPLES / name).read_text())
    done = python(*words, at=cwd, PYTHONDONTWRITEBYTECODE="1")
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_the_page_shows_the_output_of_the_filter(tmp_path: Path) -> None:
    said = said_by("-m", "pipelines.wudao", "--filter", "no_ads:no_ads", cwd=tmp_path)
    shown = re.search(r"--filter no_ads:no_ads\n…\n(.*?)…\n```", PAGE.read_text(), re.DOTALL)
    assert shown is not None
    parts = map(re.escape, shown[1].split("…\n"))
    assert re.search(".*".join(parts), said, re.DOTALL)
    source = (EXAMPLES / "no_ads.py").read_text()
    code = re.search(r"```python\n(PHRASES.*?)```", PAGE.read_text(), re.DOTALL)
    assert code is not None
    assert code[1] in source


@pytest.mark.slow
def test_a_custom_model_is_trained_applied_and_given_another_bound(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("清晨的集市上老人卖豆腐\n邻居们提着篮子围了过来\n")
    (tmp_path / "bad.txt").write_text("The old bridge was closed\nRepairs during the summer\n")
    said_by("own_model.py", "good.txt", "bad.txt", "model.npz", cwd=tmp_path)
    asked = "own_model:Liked?model=model.npz&min_score=0.4"
    said_by("-m", "pipelines.wudao", "--filter", asked, cwd=tmp_path)
    dataset = tmp_path / "build" / "wudao"
    report = json.loads((dataset / "report.json").read_text())
    (rows,) = report["funnel"].values()
    dropped = {row["reason"]: row["rows"] for row in rows}["Liked-low-score"]
    assert dropped > 0
    said = said_by(
        *("-m", "pipelines.rethreshold", dataset, "--threshold", "Liked.min_score=0"), cwd=tmp_path
    )
    assert re.search(rf"Liked.min_score +0.4 -> 0 +{dropped} +0", said)
