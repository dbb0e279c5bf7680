"""Records that end the process that judges them: real workers, really dying."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pipelines.corpus.options import Options
from pipelines.map import mapper
from pipelines.map.attempts import (
    JUDGING,
    MOST_POISON,
    READING,
    WRITING,
    Attempt,
    AttemptPosition,
    begin_attempt,
    death_advice,
    died_before,
    forget,
)
from pipelines.readers.record import Damage, Record
from pipelines.run.build import build
from pipelines.wudao import RECIPE
from shards import Dataset
from shards.errors import UserError
from shards.storage.files import map_bytes
from shards.storage.remote import AnyPath, RemotePath
from tests.pipelines.deadly import EXIT, KILL
from tests.pipelines.runs import content, many_splits, page

MODULE = "tests.pipelines.deadly"
ROOT = Path(__file__).parents[3]


def write(folder: Path, *deadly: tuple[int, str], records: int = 60) -> Path:
    """Texts, one a line; at some numbers there are deadly ones."""
    folder.mkdir(parents=True)
    texts = dict(deadly)
    lines = [
        json.dumps({"text": texts.get(at, page(at)["content"])}, ensure_ascii=False) + "\n"
        for at in range(records)
    ]
    (folder / "a.jsonl").write_text("".join(lines))
    return folder / "a.jsonl"


def place(path: Path, marker: str) -> tuple[int, int]:
    """Where the record with a marker begins and ends."""
    at = 0
    for line in path.read_bytes().splitlines(keepends=True):
        if marker.encode() in line:
            return at, at + len(line) - 1
        at += len(line)
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
    told = str(raised.value)
    assert (
        f"died 3 times at the same task, the last time with nothing running beside it: {cause}"
        in told
    )
    assert f"It died judging the record from {start:,} to {end:,} (" in told
    assert "--skip-poison quarantines such records" in told
    (split,) = [s for s in range(0, 99_999, 7000) if s <= start < s + 7000]
    assert f"map of bytes {split} to " in told
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
    found = {(row["position"], row["position"] + row["length"]): row["raw"] for row in rows}
    assert found == {
        (start, end): raw[start:end]
        for start, end in (place(path, text) for text in deadly.values())
    }
    assert not list((tmp_path / "out/.work/attempts").glob("*"))

    clean = tmp_path / "clean" / "a.jsonl"
    clean.parent.mkdir()
    gone = [text.encode() for text in deadly.values()]
    lines = [line for line in raw.splitlines(keepends=True) if not any(g in line for g in gone)]
    clean.write_bytes(b"".join(lines))
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


def test_records_judged_one_by_one_make_the_same_bytes(
    reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []

    class Careful(Attempt):
        def steps(self, items: Any) -> Iterator[Any]:
            for step in super().steps(items):
                steps.append(len(step))
                yield step

    @contextmanager
    def careful(*_: object, **__: object) -> Iterator[Attempt]:
        yield Careful(deaths=[AttemptPosition(doing=JUDGING, start=0, end=1 << 40, records=9)])

    monkeypatch.setattr(mapper, "begin_attempt", careful)
    build("pipelines.wudao", many_splits(tmp_path / "out"))
    assert len(steps) == 531
    assert {*steps} == {1}
    assert content(tmp_path / "out") == {
        name: each for name, each in content(reference).items() if not name.startswith(".work")
    }


# --- notes


@pytest.fixture(params=["disk", "url"])
def work(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyPath]:
    if request.param == "disk":
        yield tmp_path
        return
    yield RemotePath("memory://bucket/work")
    MemoryFileSystem().store.clear()


def die(work: AnyPath, *places: AttemptPosition, task: str = "t", run: str = "r") -> None:
    """Leave the note of an attempt that died."""
    with (
        suppress(KeyboardInterrupt),
        begin_attempt(work, task, run=run, skip_poison=True, description="map of x") as tried,
    ):
        for each in places:
            tried.note(each)
        assert tried.file
        note = map_bytes(tried.file).tobytes()
        raise KeyboardInterrupt
    if isinstance(tried.file, Path):
        tried.file.write_bytes(note)
    else:
        tried.file.write(note)


def judging(start: int, end: int, records: int) -> AttemptPosition:
    return AttemptPosition(doing=JUDGING, start=start, end=end, records=records)


def test_an_attempt_that_ends_leaves_no_note(work: AnyPath) -> None:
    with begin_attempt(work, "t", run="r", skip_poison=False, description="x") as first:
        assert died_before(work)
        assert first.deaths == []
    assert not died_before(work)
    with (
        pytest.raises(ValueError, match="bad"),
        begin_attempt(work, "t", run="r", skip_poison=False, description="x"),
    ):
        raise ValueError("bad")
    assert not died_before(work)


def test_the_second_death_tells_a_batch_and_the_third_a_record(work: AnyPath) -> None:
    items = [Record(at, 10, {}, b"0123456789") for at in range(0, 60, 10)]
    die(work, judging(0, 60, 6))
    assert death_advice(work, "t", run="r") == ""  # nobody had died: it said nothing
    die(work, judging(0, 30, 3), judging(30, 60, 3))
    assert "It died judging 3 records from 30 to 60 (" in death_advice(work, "t", run="r")
    with begin_attempt(work, "t", run="r", skip_poison=True, description="x") as third:
        assert [len(step) for step in third.steps(items)] == [3, 1, 1, 1]
    assert not died_before(work)  # the split is finished


def test_poison_comes_as_damage_if_it_is_to_be_skipped(work: AnyPath) -> None:
    items = [Record(at, 10, {}, b"0123456789") for at in (0, 10, 20)]
    die(work)
    die(work, judging(0, 30, 3))
    die(work, judging(10, 20, 1))
    with begin_attempt(work, "t", run="r", skip_poison=True, description="x") as next_one:
        assert not next_one.poison, "once may be a neighbour's fault"
    die(work)
    die(work, judging(0, 30, 3))
    die(work, judging(10, 20, 1))
    die(work, judging(10, 20, 1))
    with begin_attempt(work, "t", run="r", skip_poison=True, description="x") as next_one:
        steps = [each for step in next_one.steps(items) for each in step]
        assert steps == [items[0], Damage(10, 10, "poison", b"0123456789"), items[2]]
        assert next_one.poison == {(10, 20)}
    die(work)
    die(work, judging(0, 30, 3))
    die(work, judging(10, 20, 1))
    die(work, judging(10, 20, 1))
    with (
        pytest.raises(UserError, match=r"^4 processes died .* at the map of x\. It died judging t"),
        begin_attempt(work, "t", run="r", skip_poison=False, description="map of x"),
    ):
        pass


def test_notes_of_other_runs_and_tasks_do_not_count(work: AnyPath) -> None:
    die(work, run="other")
    die(work, task="other")
    with begin_attempt(work, "t", run="r", skip_poison=False, description="x") as first:
        assert first.deaths == []
    assert died_before(work)
    forget(work)
    assert not died_before(work)


@pytest.mark.parametrize("doing", [READING, WRITING])
def test_who_dies_reading_or_writing_is_not_tried_for_ever(work: AnyPath, doing: str) -> None:
    where = AttemptPosition(doing=doing, start=5, end=5)
    die(work)
    die(work, where)
    die(work, where)
    with (
        pytest.raises(UserError, match=f"It died {doing} .* 5 "),
        begin_attempt(work, "t", run="r", skip_poison=True, description="x"),
    ):
        pass


def test_too_much_poison_is_no_poison(tmp_path: Path) -> None:
    for at in range(MOST_POISON + 2):
        die(tmp_path, judging(at, at + 1, 1))
    with (
        pytest.raises(
            UserError, match=r"more than 100 records of the map of x .* the last one at 1"
        ),
        begin_attempt(tmp_path, "t", run="r", skip_poison=True, description="map of x"),
    ):
        pass


def test_a_note_cut_short_is_a_death_somewhere(tmp_path: Path) -> None:
    die(tmp_path)
    (note,) = (tmp_path / "attempts").iterdir()
    os.truncate(note, 5)
    with begin_attempt(tmp_path, "t", run="r", skip_poison=False, description="x") as second:
        assert second.deaths == [AttemptPosition()]
