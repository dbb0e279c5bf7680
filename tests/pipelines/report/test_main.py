import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from shards import Dataset
from shards.console import run_module
from shards.prune import leftovers
from shards.verify import verify

main = partial(run_module, "pipelines.report")


@pytest.fixture
def dataset(reference: Path, tmp_path: Path) -> Path:
    """A copy of the reference dataset, to write into."""
    return Path(shutil.copytree(reference, tmp_path / "dataset"))


def test_a_run_leaves_the_page_that_the_command_draws(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = (dataset / "report.html").read_bytes()
    assert drawn.startswith(b"<!doctype html>\n")
    assert main([str(dataset), "--output", str(tmp_path / "again.html")]) == 0
    assert (tmp_path / "again.html").read_bytes() == drawn
    assert capsys.readouterr().out == f"{tmp_path / 'again.html'}\n"
    assert main([str(dataset), "--corpus-size", "200GB"]) == 0
    assert b"<b>200 GB</b>" in (dataset / "report.html").read_bytes()


def test_the_page_is_no_part_of_the_dataset(dataset: Path) -> None:
    opened = Dataset.open(dataset)
    assert "report.html" not in {name for name, _ in opened.manifest.files()}
    assert "report.html" not in {left.path.name for left in leftovers(dataset, opened.manifest)}
    (dataset / "report.html").write_text("changed")
    assert list(verify(opened)) == []


def test_the_command_needs_no_beam_and_no_model_and_jinja_only_to_draw() -> None:
    heavy = ("apache_beam", "sentencepiece", "ftfy", "jinja2")
    script = (
        "import sys, pipelines.report.command; "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "[]\n"
