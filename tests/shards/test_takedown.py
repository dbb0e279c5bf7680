from dataclasses import replace
from pathlib import Path

import pytest

from shards.__main__ import main
from shards.mixture import Mix
from shards.run import BatchSize, Run
from shards.trace import Tracer
from tests.shards.library import FIRST, build


@pytest.fixture
def library(tmp_path: Path) -> Path:
    build(tmp_path / "library")
    return tmp_path / "library"


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
