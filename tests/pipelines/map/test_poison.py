"""Records that end the process that judges them, with real workers that die."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.corpus.options import Options
from pipelines.run.build import build
from pipelines.wudao import RECIPE
from shards import Dataset
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


def place(path: Path, marker: str) -> tuple[int, int]:
    """Return where the record with a marker begins and ends."""
    offset = 0
    for line in path.read_bytes().splitlines(keepends=True):
        if marker.encode() in line:
            return offset, offset + len(line) - 1
        offset += len(line)
    raise AssertionError(marker)


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


def texts(output: Path) -> list[str]:
    dataset = Dataset.open(output)
    (shard,) = dataset.documents().shards()
    return sorted(dataset.vocabulary.decode(shard[row][:-1]) for row in range(len(shard.documents)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("marker", "cause"), [(EXIT, "it exited with code 7"), (KILL, "it was killed, most likely")]
)
def test_a_record_that_kills_is_named_and_neighbours_are_finished(
    tmp_path: Path, marker: str, cause: str
) -> None:
    path = write(tmp_path / "in", (20, marker))
    start, end = place(path, marker)
    with pytest.raises(UserError) as raised:
        build(MODULE, options(tmp_path / "out", path))
    message = str(raised.value)
    assert (
        f"died 3 times at the same task, the last time with nothing running beside it: {cause}"
        in message
    )
    assert f"It died judging the record from {start:,} to {end:,} (" in message
    assert "--skip-poison quarantines such records" in message
    assert f"map of bytes {start // 7000 * 7000} to " in message
    total = -(-path.stat().st_size // 7000)
    assert len(list((tmp_path / "out/.work/map").glob("*.json"))) >= total - 2


@pytest.mark.slow
def test_poison_is_quarantined_and_everything_else_is_kept(tmp_path: Path) -> None:
    """Two in one split, one of another kind in another."""
    deadly = {11: f"{EXIT} 一", 13: f"{KILL} 二", 40: f"{EXIT} 三"}
    path = write(tmp_path / "in", *deadly.items())
    made = build(MODULE, options(tmp_path / "out", path, skip_poison=True, keep_segments=True))
    account = made.generations[0].accounting["deadly"]
    assert account["quarantined"] == {"poison": 3}
    assert account["read"] == 60 == account["kept"] + 3 + sum(account["dropped"].values())
    rows = [
        row
        for table in made.generations[0].rejects
        for row in pq.read_table(tmp_path / "out" / table.path).to_pylist()
    ]
    raw = path.read_bytes()
    assert {row["reason"] for row in rows} == {"poison"}
    rejected = {(row["position"], row["position"] + row["length"]): row["raw"] for row in rows}
    assert rejected == {
        (start, end): raw[start:end]
        for start, end in (place(path, text) for text in deadly.values())
    }
    assert not list((tmp_path / "out/.work/attempts").glob("*"))

    clean = tmp_path / "clean" / "a.jsonl"
    clean.parent.mkdir()
    poison = [text.encode() for text in deadly.values()]
    lines = raw.splitlines(keepends=True)
    clean.write_bytes(b"".join(line for line in lines if not any(text in line for text in poison)))
    build(MODULE, options(tmp_path / "other", clean, workers=1))
    assert texts(tmp_path / "out") == texts(tmp_path / "other")

    (tmp_path / "out" / "manifest.json").unlink()
    with pytest.raises(UserError, match="died 3 times"):  # without the flag it is not finished
        build(MODULE, options(tmp_path / "out", path))


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
    start, end = place(path, EXIT)
    assert f"judging the record from {start:,} to {end:,}" in done.stderr
