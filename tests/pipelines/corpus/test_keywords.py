import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.corpus.keywords import options_of_call
from pipelines.wudao import WudaoOptions
from shards.errors import UserError
from shards.storage.remote import any_path


def options(values: dict[str, Any]) -> WudaoOptions:
    return options_of_call(WudaoOptions, values, module="pipelines.wudao")


@pytest.mark.parametrize(
    ("name", "value", "option"),
    [
        ("input", "a b", ("a b",)),
        ("input", ["a", Path("b")], ("a", "b")),
        ("input", [], ()),
        ("output", "s3://bucket/a", any_path("s3://bucket/a")),
        ("output", any_path("s3://bucket/a"), any_path("s3://bucket/a")),
        ("shard_tokens", 1e8, 100_000_000),
        ("shard_tokens", "1B", 1_000_000_000),
        ("shard_tokens", np.int64(7), 7),
        ("validation", np.float64(0.025), 0.025),
        ("sample", 1e-05, 1e-05),
        ("title_separator", "-- ", "-- "),
        ("title_separator", "", ""),
        ("until", datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)),
        ("filter", [Path, re.sub], ("pathlib:Path", "re:sub")),
        ("tokenizer", None, ""),
        ("workers", 0, 0),
    ],
)
def test_keywords_become_options(name: str, value: Any, option: Any) -> None:
    assert getattr(options({name: value}), name) == option


def test_other_keywords_are_flags_of_beam() -> None:
    values = {"runner": None, "streaming": True, "view_as": False, "experiments": ["a", "b=1"]}
    given = options_of_call(WudaoOptions, values, module="pipelines.wudao", runner_flags=["--x=7"])
    assert given.beam_args == ("--streaming", "--experiments=a", "--experiments=b=1", "--x=7")
    with pytest.raises(UserError, match="flink_master is given a object"):
        options({"flink_master": object()})
