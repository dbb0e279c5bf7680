import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from shards.__main__ import main
from shards.mixture import Mix
from shards.reader import Dataset
from shards.run import BatchSize, Run
from shards.trace import TracedDocument, Tracer
from shards.verify import verify
from tests.shards.datasets import take_down
from tests.shards.kills import is_killed_at


@pytest.fixture
def own(library: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(library, tmp_path / "library"))


@pytest.mark.parametrize("moment", [1, "manifest.json"])
def test_a_process_that_dies_while_it_writes(own: Path, moment: int | str) -> None:
    manifest = (own / "manifest.json").read_bytes()
    words = ["remove", str(own), "--id", "news-2-5", "--reason", "letter"]
    assert is_killed_at(moment, lambda: main(words))
    assert (own / "manifest.json").read_bytes() == manifest
    assert not Dataset.open(own).removed
    take_down(own, "news-2-5")
    assert list(verify(Dataset.open(own))) == []


def test_nothing_is_locked_where_no_dataset_is(tmp_path: Path) -> None:
    assert main(["remove", str(tmp_path), "--id", "a", "--reason", "a letter"]) == 2
    assert not list(tmp_path.iterdir())


def test_a_run_that_follows_says_until_when(
    own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Run(
        mixes=(Mix(start=0, data=(f"{own}@2",)),),
        batches=(BatchSize(step=0, size=4),),
        objective="causal",
        length=64,
        steps=160,
    )
    tracer = Tracer(before)
    news = next(i for i, name in enumerate(tracer.sampler.names) if name.startswith("00aa/news"))
    seen = tracer.steps_of(TracedDocument(stream=news, shard=2, row=5), until=160)
    take_down(own, "news-2-5")
    switch = Mix(start=320, data=(f"{own}@3",))
    replace(before, mixes=(*before.mixes, switch), followed=320).save(tmp_path / "run.json")
    flags = ["--id", "news-2-5", "--run", str(tmp_path / "run.json"), "--dry-run"]
    assert main(["remove", str(own), *flags]) == 0
    early = [step for step in seen if step < 80]
    assert 1 < len(early) < len(seen)
    assert f"    steps {', '.join(map(str, early))}" in capsys.readouterr().out.splitlines()
