import json
from dataclasses import replace
from pathlib import Path

import pytest

from shards.__main__ import main
from shards.mixture import Mix
from shards.run import BatchSize, Run
from shards.trace import Tracer
from tests.shards.library import FIRST, SECOND, build


@pytest.fixture
def library(tmp_path: Path) -> Path:
    build(tmp_path / "library")
    return tmp_path / "library"


def save_run(directory: Path, path: Path) -> Run:
    run = Run(
        mixes=(Mix(start=0, data=(f"{directory}@1",)), Mix(start=200, data=(str(directory),))),
        batches=(BatchSize(step=0, size=4),),
        objective="causal",
        length=64,
        steps=60,
    )
    run.save(path)
    return run


def steps_that_read(run: Run, shard: str, row: int) -> list[int]:
    """Look at every batch of a run."""
    tracer = Tracer(run)
    return [
        step
        for step in range(run.steps or 0)
        if any(
            tracer.sampler.streams[sample.stream].shards[sample.shard].path == shard
            and row in {piece.row for piece in sample.pieces}
            for sample in tracer.samples(step)
        )
    ]


def test_the_steps_that_a_run_trained_on_them(
    library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = save_run(library, tmp_path / "run.json")
    rows = [("news-2-5", f"{FIRST}/news/00002", 5), ("later-0-7", f"{SECOND}/news/00000", 7)]
    expected = {name: steps_that_read(run, shard, row) for name, shard, row in rows}
    assert all(len(steps) > 1 for steps in expected.values())
    assert min(expected["later-0-7"]) >= 50  # its generation is read from position 200 on
    flags = ["--id", "news-2-5", "--id", "later-0-7", "--id", "news-v-1", "--reason", "r"]
    flags += ["--run", str(tmp_path / "run.json"), "--report", str(tmp_path / "report.json")]
    # Told again later, when the run itself no longer reads them, it is the same.
    for removed_before in (False, True):
        assert main(["remove", str(library), *flags]) == 0
        out = capsys.readouterr().out.splitlines()
        told = json.loads((tmp_path / "report.json").read_bytes())
        steps = {document["names"][0]: document["steps"] for document in told["documents"]}
        assert steps == {**expected, "news-v-1": []}
        assert {document["removed_before"] for document in told["documents"]} == {removed_before}
        every = sorted({step for some in expected.values() for step in some})
        assert out[-2] == (
            f"run {tmp_path / 'run.json'}, the steps before 60: 2 of 3 documents trained on, at "
            f"{len(every)} steps from {every[0]} to {every[-1]}"
        )
        assert f"    steps {', '.join(map(str, expected['later-0-7']))}" in out
        assert "    held out for validation: no step trains on it" in out
    assert main(["remove", str(library), *flags, "--until", "50", "--dry-run"]) == 0
    out = capsys.readouterr().out.splitlines()
    early = [step for step in expected["news-2-5"] if step < 50]
    assert out[-2].endswith(
        f"the steps before 50: 1 of 3 documents trained on, at {len(early)} steps from "
        f"{early[0]} to {early[-1]}"
    )
    assert "    no step trains on it" in out


def test_a_run_that_follows_says_until_when(
    library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Run(
        mixes=(Mix(start=0, data=(f"{library}@2",)),),
        batches=(BatchSize(step=0, size=4),),
        objective="causal",
        length=64,
        steps=160,
    )
    seen = steps_that_read(before, f"{FIRST}/news/00002", 5)
    assert main(["remove", str(library), "--id", "news-2-5", "--reason", "r"]) == 0
    switch = Mix(start=320, data=(f"{library}@3",))
    replace(before, mixes=(*before.mixes, switch), followed=320).save(tmp_path / "run.json")
    flags = ["--id", "news-2-5", "--run", str(tmp_path / "run.json"), "--dry-run"]
    assert main(["remove", str(library), *flags]) == 0
    early = [step for step in seen if step < 80]
    assert 1 < len(early) < len(seen)
    assert f"    steps {', '.join(map(str, early))}" in capsys.readouterr().out.splitlines()
