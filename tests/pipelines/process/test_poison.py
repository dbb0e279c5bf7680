"""A record that kills each worker process that judges it."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from pipelines.wudao import CORPUS
from tests.pipelines.deadly import EXIT
from tests.pipelines.runs import page

MODULE = "tests.pipelines.deadly"
ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("others", [0, 3], ids=["a file", "a file among small ones"])
def test_the_file_that_kills_workers_is_named(tmp_path: Path, others: int) -> None:
    path = tmp_path / "in" / "b.jsonl"
    path.parent.mkdir()
    texts = [page(number)["content"] for number in range(3)]
    for name in ["a", "c", "d"][:others]:
        write(path.with_name(f"{name}.jsonl"), texts)
    write(path, [*texts, EXIT])
    flags = ["--input", str(path.parent), "--tokenizer", CORPUS.sample_tokenizer]
    flags += ["--languages", "all", "--workers", "1", "--output", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-m", MODULE, *flags],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "a worker died 3 times at the same item" in done.stderr
    assert f"of {path}. Finished work is kept" in done.stderr


def write(path: Path, texts: Iterable[str]) -> None:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
