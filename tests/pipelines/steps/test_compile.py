from pathlib import Path

import pytest

from pipelines import compiled
from pipelines.corpus.spec import SAMPLE
from pipelines.job.build import build
from pipelines.steps.compile import compile_all
from tests.pipelines.runs import small

RULES = ("en=gopher-repetition+gopher+c4", "zh=fineweb2-zh")


@pytest.mark.slow
def test_what_is_compiled_ahead_is_all_that_runs_use(tmp_path: Path) -> None:
    assert compile_all().startswith("kernels are ready after ")
    folder = compiled.cache_folder()
    assert folder is not None
    before = {path.name for path in folder.iterdir()}
    assert len(before) > 100
    for dedup in ("exact", "minhash"):
        build("pipelines.wudao", small(tmp_path / dedup, SAMPLE, dedup=dedup, quality=RULES))
    assert {path.name for path in folder.iterdir()} == before
