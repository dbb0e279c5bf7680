from pathlib import Path

import pytest

from pipelines.filters.step import Clock, run
from pipelines.map.chain import load_chain
from pipelines.wudao import RECIPE, WudaoOptions
from tests.pipelines.filters.batches import CHINESE, ENGLISH, JAPANESE, batch


def options(**changes: object) -> WudaoOptions:
    return WudaoOptions(tokenizer=RECIPE.sample_tokenizer, **changes)  # type: ignore[arg-type]  # any option


def test_native_loops_that_cannot_be_had_cost_one_line(
    tmp_path: Path, broken_numba: str, caplog: pytest.LogCaptureFixture
) -> None:
    benchmark = tmp_path / "benchmark.txt"
    benchmark.write_text(ENGLISH)
    chosen = options(
        dedup="minhash", quality=("zh=fineweb2-zh", "en=gopher"), decontaminate=(str(benchmark),)
    )
    native, plain = (
        load_chain(chosen, native=native, run=str(tmp_path)) for native in (True, False)
    )
    assert caplog.messages == [broken_numba]
    rows = batch(CHINESE, f"{ENGLISH} &amp; more", JAPANESE)
    for given, expected in zip(
        run(rows, native.steps, Clock())[1], run(rows, plain.steps, Clock())[1], strict=True
    ):
        assert given == expected
    assert native.engines == plain.engines
