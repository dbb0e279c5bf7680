import inspect
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.corpus.flags import parse
from pipelines.corpus.keywords import described, engine_words, nearest, parameters, words_of
from pipelines.corpus.options import Options
from pipelines.wudao import WudaoOptions
from shards.errors import UserError
from shards.storage.remote import any_path


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("input", "a b", ["--input=a b"]),
        ("input", Path("a"), ["--input=a"]),
        ("input", ["a", Path("b")], ["--input=a", "--input=b"]),
        ("input", {"zh": "a", "en": "pile:b"}, ["--input=zh=a", "--input=en=pile:b"]),
        ("input", [], []),
        ("output", any_path("s3://bucket/a"), ["--output=s3://bucket/a"]),
        ("languages", ["zh", "ja"], ["--languages=zh,ja"]),
        ("languages", "zh,ja", ["--languages=zh,ja"]),
        ("threshold", {"gopher.min_words": 30}, ["--threshold=gopher.min_words=30"]),
        ("quality", {"zh": "c4", "en": "a+b"}, ["--quality=zh=c4,en=a+b"]),
        ("shard_tokens", 5_000, ["--shard-tokens=5000"]),
        ("shard_tokens", 1e8, ["--shard-tokens=100000000"]),
        ("shard_tokens", "1B", ["--shard-tokens=1B"]),
        ("shard_tokens", np.int64(7), ["--shard-tokens=7"]),
        ("validation", 0.25, ["--validation=0.25"]),
        ("validation", np.float64(0.25), ["--validation=0.25"]),
        ("sample", 1e-05, ["--sample=1e-05"]),
        ("title_separator", "-- ", ["--title-separator=-- "]),
        ("until", datetime(2026, 1, 2, tzinfo=UTC), ["--until=2026-01-02T00:00:00+00:00"]),
        ("filter", [Path, re.sub], ["--filter=pathlib:Path", "--filter=re:sub"]),
        ("append", True, ["--append"]),
        ("append", False, []),
        ("tokenizer", None, []),
        ("workers", 0, []),
    ],
)
def test_a_value_becomes_the_words_of_its_flag(name: str, value: Any, words: list[str]) -> None:
    assert words_of(WudaoOptions, {name: value}) == words


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"append": "yes"}, "append='yes' is neither True nor False"),
        ({"tokenizer": ["a", "b"]}, re.escape("tokenizer takes one value, not several: ['a',")),
        ({"languages": ["zh,en"]}, "'zh,en' holds a comma, at which --languages parts"),
        ({"input": object()}, "input is given a object, <object .*>: it takes text, a number"),
        ({"filter": lambda batch: batch}, "filter: <lambda> has no name in the module"),
        ({"input": b"a"}, "input is given a bytes"),
        ({"input": {"zh": ["a", "b"]}}, "input is given a list"),
    ],
)
def test_a_value_that_no_flag_takes(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        words_of(WudaoOptions, values)


def test_keywords_give_the_options_of_the_command() -> None:
    values = {
        "input": {"zh": "a"},
        "languages": ["zh"],
        "min_chars": 30,
        "title_separator": "",
        "validation": "5%",
        "keep_dropped": True,
    }
    options, rest = parse(WudaoOptions, words_of(WudaoOptions, values), program="x", about="")
    assert not rest
    assert options == WudaoOptions(
        input=("zh=a",),
        languages=("zh",),
        min_chars=30,
        title_separator="",
        validation=0.05,
        keep_dropped=True,
    )


def test_flags_of_an_engine() -> None:
    values = {"runner": None, "streaming": True, "quiet": False, "experiments": ["a", "b=1"]}
    assert engine_words(values) == ["--streaming", "--experiments=a", "--experiments=b=1"]
    with pytest.raises(UserError, match="flink_master is given a object"):
        engine_words({"flink_master": object()})


def test_the_nearest_option() -> None:
    assert nearest("tokeniser", WudaoOptions, likeness=0.8) == "tokenizer"
    assert nearest("min-char", WudaoOptions, likeness=0.8) == "min_chars"
    assert nearest("flink_master", WudaoOptions, likeness=0.8) is None


def test_options_are_told_as_parameters_and_arguments() -> None:
    shown = str(inspect.Signature(parameters(WudaoOptions, without=["plan"])))
    assert "output: str | pathlib.Path = None" in shown
    assert "languages: str | list[str] = ('zh', 'en')" in shown
    assert "min_chars: int = 101" in shown
    assert "plan" not in shown
    lines = described(WudaoOptions, without=["plan"]).splitlines()
    assert "    min_chars: Minimum characters of a document. Default: 101." in lines
    text = " ".join(line.strip() for line in lines)
    assert "One of: none, exact, minhash. Default: exact." in text
    assert "language_threshold applies to each" in text
    assert not re.search(r"(?<!\S)--[a-z]", text)
    assert max(map(len, lines)) <= 92
    for option in parameters(Options, without=["plan"]):
        assert f"    {option.name}: " in "\n".join(lines)
