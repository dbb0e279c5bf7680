"""Records that end the process that judges them, with real workers that die."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipelines.corpus.options import Options
from pipelines.run.build import build
from pipelines.wudao import RECIPE
from shards.errors import UserError
from tests.pipelines.deadly import EXIT, KILL
from tests.pipelines.runs import page

MODULE = "tests.pipelines.deadly"
ROOT = Path(__file__).parents[3]


def write(folder: Path, *deadly: tuple[int, str], records: int = 60) -> Path:
    """Write texts, one a line; those with the numbers in `deadly` are deadly."""
    folder.mkdir(parents=True)
    texts = dict(deadly)
    lines = [
        json.dumps({"text": texts.get(number, page(number)["content"])}, ensure_ascii=False) + "\n"
        for number in range(records)
    ]
    (folder / "a.jsonl").write_text("".join(lines))
    return folder / "a.jsonl"


def options(output: Path, path: Path, **changes: Any) -> Options:
    return Options(
        **{
            "input": (str(path.parent),),
            "output": output,
            "tokenizer": RECIPE.sample_tokenizer,
            "languages": ("all",),
            "language_threshold": 0.0,
            "validation": 0.0,
            "shards": 1,
            "split_bytes": 7000,
            "max_reject_rate": 0.5,
            "workers": 2,
            **changes,
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("marker", "cause"), [(EXIT, "it exited with code 7"), (KILL, "it was killed, most likely")]
)
def test_a_file_that_kills_is_named_and_its_neighbours_are_finished(
    tmp_path: Path, marker: str, cause: str
) -> None:
    path = write(tmp_path / "in", (20, marker))
    raw = path.read_bytes()
    start = raw[: raw.index(marker.encode())].rindex(b"\n") + 1
    with pytest.raises(UserError) as raised:
        build(MODULE, options(tmp_path / "out", path))
    message = str(raised.value)
    assert (
        f"died 3 times at the same task, the last time with nothing running beside it: {cause}"
        in message
    )
    assert f"map of bytes {start // 7000 * 7000} to " in message
    assert str(path) in message
    total = -(-path.stat().st_size // 7000)
    assert len(list((tmp_path / "out/.work/map").glob("*.json"))) >= total - 2


@pytest.mark.slow
def test_a_run_that_died_in_its_own_process_is_repeated_with_a_worker(tmp_path: Path) -> None:
    path = write(tmp_path / "in", (3, EXIT), records=9)
    flags = ["--input", str(path), "--tokenizer", RECIPE.sample_tokenizer, "--languages", "all"]
    flags += ["--output", str(tmp_path / "out")]
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
    assert "a worker died 3 times at the same task" in done.stderr
    assert f"of {path}. Finished work is kept" in done.stderr
