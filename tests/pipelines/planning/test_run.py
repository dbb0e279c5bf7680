import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.corpus.options import Options
from pipelines.map import mapper
from pipelines.map.chain import Chain, load_chain
from pipelines.planning import run as planning
from pipelines.planning.run import plan
from pipelines.run import command
from pipelines.run.build import build
from pipelines.run.command import completed
from pipelines.wudao import RECIPE
from shards.manifest import TRAIN, VALIDATION, sum_shards
from shards.storage.files import files
from shards.storage.remote import RemotePath

OPTIONS = completed(RECIPE.options(), RECIPE)


@pytest.mark.parametrize("flags", [[], ["--dedup", "minhash", "--workers", "3"]])
def test_the_command_prints_a_plan_and_writes_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    flags: Sequence[str],
) -> None:
    output, temporary = tmp_path / "out", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    assert command.main("pipelines.wudao", ["--plan", "--output", str(output), *flags]) == 0
    printed = capsys.readouterr().out
    for word in ("wudao", "map", "dedup", "merge", "wall time", "disk", "memory", "through Beam"):
        assert word in printed
    assert ("slots" in printed) == ("minhash" in flags)
    assert not output.exists()
    assert not [*temporary.glob("corpusmill-plan-*")]


def test_a_plan_says_what_is_wrong_with_the_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copyfile(__file__, tmp_path / "part-1.json")
    flags = ["--plan", "--input", str(tmp_path), "--tokenizer", RECIPE.sample_tokenizer]
    assert command.main("pipelines.wudao", flags) == 2
    assert "part-1.json" in capsys.readouterr().err


def test_a_plan_writes_nothing_behind_a_url() -> None:
    output = RemotePath("memory://plan/out")
    estimated = plan("pipelines.wudao", replace(OPTIONS, output=output), seconds=1)
    assert estimated.extent.remote
    assert not output.files()


@pytest.mark.parametrize("pays", [False, True])
def test_the_sample_is_timed_with_the_loops_of_the_run(
    monkeypatch: pytest.MonkeyPatch, pays: bool
) -> None:
    asked: list[bool] = []
    chains: list[Chain] = []

    def loaded(options: Options, *, compiled: bool, run: str) -> Chain:
        asked.append(compiled)
        chains.append(load_chain(options, native=False, run=run))
        return chains[-1]

    monkeypatch.setattr(planning, "native_pays", lambda *_, **__: pays)
    for module in (planning, mapper):
        monkeypatch.setattr(module, "load_chain", loaded)
    plan("pipelines.wudao", OPTIONS, seconds=0.1)
    assert asked == [pays, pays]
    assert chains[0] is chains[1]  # loaded once


@pytest.mark.slow
def test_the_sample_corpus_comes_out_as_the_plan_says(tmp_path: Path) -> None:
    options = replace(OPTIONS, output=tmp_path / "out", keep_segments=True)
    counts = plan("pipelines.wudao", options).extent
    made = build("pipelines.wudao", options)
    sums = [sum_shards(made.shards(split=split)) for split in (TRAIN, VALIDATION)]
    assert counts.total("documents") == pytest.approx(
        sum(split.documents for split in sums), rel=0.25
    )
    assert counts.total("tokens") == pytest.approx(sum(split.tokens for split in sums), rel=0.25)
    sizes = files(options.output)
    segments = {name: size for name, size in sizes.items() if name.startswith(".work/map/")}
    written = sum(size for name, size in segments.items() if not name.endswith(".json"))
    assert counts.total("segment_bytes") == pytest.approx(written, rel=0.25)
    shards = sum(size for name, size in sizes.items() if "/wudao/" in name)
    assert counts.total("shard_bytes") == pytest.approx(shards, rel=0.25)
    account = json.loads((tmp_path / "out" / "report.json").read_bytes())
    assert account["tasks"]["map"]["all"] == counts.count("splits")
    assert account["tasks"]["merge"]["all"] == counts.count("merge_tasks")
