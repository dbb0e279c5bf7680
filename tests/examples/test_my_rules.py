"""Tests docs/examples/my_rules.py and my_words.py: the profile and splitter of docs/own.md."""

import sys
from collections.abc import Iterator

import pytest

from pipelines.corpus.code import code_hash
from pipelines.quality import QualityRules
from tests.examples.test_web_pages import CHINESE, EXAMPLES


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    for name in ("my_rules", "my_words"):
        sys.modules.pop(name, None)
    code_hash.cache_clear()


def test_pages_that_shout_or_end_in_the_middle() -> None:
    quality = QualityRules.parse(["zh=my_rules:web"])
    whole = CHINESE[0] * 3
    judged = quality.judge([whole, f"{whole}快来买！！", whole[:-4]], ["zh"] * 3)
    assert judged.reasons == [None, "web-shouting", "web-cut-off"]
    assert judged.metrics["web.whole"].tolist() == [1, 1, 0]


def test_words_of_japanese() -> None:
    quality = QualityRules.parse(["ja@my_words:split=gopher"], ["gopher.min_words=5"])
    judged = quality.judge(["吾輩は猫である。ラジオはまだ無い。", "猫。"], ["ja", "ja"])
    # 吾輩は 猫である ラジオ はまだ 無い
    assert judged.metrics["gopher.words"].tolist() == [5, 1]
    assert judged.reasons[1] == "gopher-few-words"
