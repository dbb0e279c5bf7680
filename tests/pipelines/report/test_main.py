import json
import shutil
import subprocess
import sys
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from pipelines.report.__main__ import corpus_size, main
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
    assert main([str(dataset), "--corpus-size", "200GB"]) == 0
    assert b"<b>200 GB</b>" in (dataset / "report.html").read_bytes()


def test_the_page_is_no_part_of_the_dataset(dataset: Path) -> None:
    opened = Dataset.open(dataset)
    assert "report.html" not in {name for name, _ in opened.manifest.files()}
    assert "report.html" not in {left.path.name for left in leftovers(dataset, opened.manifest)}
    (dataset / "report.html").write_text("changed")
    assert list(verify(opened)) == []


def test_report_json_stays_small_beside_its_corpus(dataset: Path) -> None:
    report = json.loads((dataset / "report.json").read_bytes())
    texts = [
        row["text"]
        for reasons in report["examples"].values()
        for rows in reasons.values()
        for row in rows
    ]
    assert texts
    assert all(len(text) <= 1000 for text in texts)
    assert (dataset / "report.json").stat().st_size < 200_000


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("200GB", 200 * 10**9),
        ("1.5 TB", 1_500 * 10**9),
        ("7 B", 7),
        ("10MiB", 10 << 20),
        ("3tb", 3 * 10**12),
    ],
)
def test_a_corpus_size_has_a_unit(text: str, size: int) -> None:
    assert corpus_size(text) == size


@pytest.mark.parametrize("text", ["", "200", "GB", "0GB", "-1GB", "1XB", "1e9B"])
def test_what_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="write it as 200GB"):
        corpus_size(text)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "the following arguments are required: dataset"),
        (["DATASET", "--corpus-size", "much"], "'much' is not a size: write it as 200GB or 1.5TB"),
        (["nowhere"], "nowhere does not exist"),
    ],
)
def test_mistakes_are_explained_in_one_paragraph(
    dataset: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    assert main([flag.replace("DATASET", str(dataset)) for flag in flags]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1


def test_a_dataset_without_its_report_says_what_to_do(
    dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (dataset / "report.json").unlink()
    assert main([str(dataset)]) == 2
    assert "report.json is missing" in capsys.readouterr().err


def test_the_command_needs_no_beam_and_no_model_and_jinja_only_to_draw() -> None:
    heavy = ("apache_beam", "sentencepiece", "ftfy", "jinja2")
    script = (
        "import sys, pipelines.report.__main__; "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "[]\n"
