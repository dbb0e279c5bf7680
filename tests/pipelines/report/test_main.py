import shutil
from pathlib import Path

import pytest

from pipelines.report.__main__ import main
from shards import Dataset
from shards.prune import leftovers
from shards.verify import verify


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
    for text, shown in (("200GB", "200 GB"), ("1.5 TB", "1.5 TB"), ("10MiB", "10.5 MB")):
        assert main([str(dataset), "--corpus-size", text]) == 0
        assert f"<b>{shown}</b>" in (dataset / "report.html").read_text()


def test_the_page_is_no_part_of_the_dataset(dataset: Path) -> None:
    opened = Dataset.open(dataset)
    assert "report.html" not in {name for name, _ in opened.manifest.files()}
    assert "report.html" not in {left.path.name for left in leftovers(dataset, opened.manifest)}
    (dataset / "report.html").write_text("changed")
    assert list(verify(opened)) == []
