import json
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.planning.run import plan
from pipelines.run.build import build
from pipelines.run.command import completed
from pipelines.wudao import RECIPE
from shards.manifest import TRAIN, VALIDATION, sum_shards
from shards.storage.files import files

OPTIONS = completed(RECIPE.options(), RECIPE)


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
