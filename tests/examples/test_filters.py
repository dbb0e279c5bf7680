"""docs/examples/no_ads.py and own_model.py: filters, as docs/own.md has them."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pipelines.corpus.code import code_hash
from pipelines.run.build import build
from tests.examples.test_web_pages import EXAMPLES
from tests.pipelines.runs import page, small, write_wudao

ADS = "今天限时优惠，点击购买就送一把扇子，" * 6
SUMS = ("二加三等于五，五加七等于十二。", "九乘以八等于七十二，再减一等于七十一。")
STORIES = ("老人沿着河边慢慢地走回家去。", "孩子们在树下听他讲从前的事。")


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    for name in ("no_ads", "own_model"):
        sys.modules.pop(name, None)
    code_hash.cache_clear()


def test_two_filters_in_one_run(tmp_path: Path) -> None:
    weights = importlib.import_module("own_model").train([*STORIES], [*SUMS])
    np.savez(tmp_path / "model.npz", weights=weights)
    texts = ["", "", ADS, SUMS[0] * 12]
    pages = [page(number, text) for number, text in enumerate(texts)]
    pages[3]["content"] = SUMS[0] * 12
    write_wudao(tmp_path / "in" / "part-1.json", pages)
    liked = f"own_model:Liked?model={tmp_path / 'model.npz'}&min_score=0.3"
    options = small(tmp_path / "out", tmp_path / "in", filter=("no_ads:no_ads", liked))
    account = build("pipelines.wudao", options).generations[0].accounting["wudao"]
    assert account["dropped"] == {"Liked-low-score": 1, "no_ads:ads": 1}
    assert account["kept"] == 2
