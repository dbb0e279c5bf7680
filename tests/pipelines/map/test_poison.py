"""A record that ends the process that judges it, with real processes that die."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from pipelines.wudao import RECIPE
from tests.pipelines.deadly import EXIT
from tests.pipelines.runs import page

MODULE = "tests.pipelines.deadly"
ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("others", [0, 3], ids=["a file", "a file among small ones"])
def test_a_run_that_died_in_its_own_process_is_repeated_with_a_worker(
    tmp_path: Path, others: int
) -> None:
    path = tmp_path / "in" / "b.jsonl"
    path.parent.mkdir()
    texts = [page(number)["content"] for number in range(3)]
    for name in ["a", "c", "d"][:others]:
        write(path.with_name(f"{name}.jsonl"), texts)
    write(path, [*texts, EXIT])
    flags = ["--input", str(path.parent), "--tokenizer", RECIPE.sample_tokenizer]
    flags += ["--languages", "all", "--output", str(tmp_path / "out")]
    for code in (7, 2):
        done = subprocess.run(
            [sys.executable, "-m", MODULE, *flags],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == code, done.stderr
    died = "3 processes died one after the other" if others else "a worker died 3 times at the same"
    assert died in done.stderr
    assert f"of {path}. Finished work is kept" in done.stderr


def write(path: Path, texts: Iterable[str]) -> None:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
