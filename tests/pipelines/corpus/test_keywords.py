import inspect
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.corpus.keywords import (
    described,
    engine_words,
    options_of_keywords,
    parameters,
)
from pipelines.corpus.options import Options
from pipelines.wudao import WudaoOptions
from shards.errors import UserError
from shards.storage.remote import any_path


def options(values: dict[str, Any]) -> WudaoOptions:
    return options_of_keywords(WudaoOptions, values, module="pipelines.wudao")


@pytest.mark.parametrize(
    ("name", "value", "option"),
    [
        ("input", "a b", ("a b",)),
        ("input", ["a", Path("b")], ("a", "b")),
        ("input", {"zh": "a", "en": "pile:b"}, ("zh=a", "en=pile:b")),
        ("input", [], ()),
        ("output", "s3://bucket/a", any_path("s3://bucket/a")),
        ("output", any_path("s3://bucket/a"), any_path("s3://bucket/a")),
        ("languages", ["zh", "ja"], ("zh", "ja")),
        ("languages", "zh,ja", ("zh", "ja")),
        ("threshold", {"gopher.min_words": 30}, ("gopher.min_words=30",)),
        ("shard_tokens", 1e8, 100_000_000),
        ("shard_tokens", "1B", 1_000_000_000),
        ("shard_tokens", np.int64(7), 7),
        ("validation", "5%", 0.05),
        ("validation", np.float64(0.025), 0.025),
        ("sample", 1e-05, 1e-05),
        ("title_separator", "-- ", "-- "),
        ("title_separator", "", ""),
        ("until", datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)),
        ("filter", [Path, re.sub], ("pathlib:Path", "re:sub")),
        ("append", True, True),
        ("keep_dropped", False, False),
        ("tokenizer", None, ""),
        ("workers", 0, 0),
    ],
)
def test_a_value_becomes_that_of_its_option(name: str, value: Any, option: Any) -> None:
    assert getattr(options({name: value}), name) == option


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
        ({"seed": -1}, r"^--seed: '-1' is not a whole .*G\. python -m pipelines\.wudao --help"),
        ({"dedup": "minhsh"}, r"^--dedup minhsh: did you mean minhash\? Give one of"),
    ],
)
def test_a_value_that_no_flag_takes(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        options(values)


def test_flags_of_an_engine() -> None:
    values = {"runner": None, "streaming": True, "quiet": False, "experiments": ["a", "b=1"]}
    assert engine_words(values) == ["--streaming", "--experiments=a", "--experiments=b=1"]
    with pytest.raises(UserError, match="flink_master is given a object"):
        engine_words({"flink_master": object()})


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
