from pathlib import Path

import pytest

from pipelines.corpus.flags import parse
from pipelines.wudao import RECIPE, WudaoOptions


def read(*argv: str) -> tuple[WudaoOptions, list[str]]:
    return parse(WudaoOptions, argv, program="pipelines.wudao", about=RECIPE.about)


@pytest.mark.parametrize(
    ("argv", "changed"),
    [
        (["--output", "there"], {"output": Path("there")}),
        (["--input", "a=/x", "--input=b=/y"], {"input": ("a=/x", "b=/y")}),
        (["--languages=ja,zh"], {"languages": ("ja", "zh")}),
        (["--validation", "5%"], {"validation": 0.05}),
        (["--shard-tokens", "3M", "--shards=7"], {"shard_tokens": 3_000_000, "shards": 7}),
        (["--keep-segments", "--overwrite"], {"keep_segments": True, "overwrite": True}),
        (["--title-separator", "\n"], {"title_separator": "\n"}),
        (["--title-separator="], {"title_separator": ""}),
        (["--title", "always", "--min-chars", "0"], {"title": "always", "min_chars": 0}),
        (["--seed", "1", "--seed", "2"], {"seed": 2}),
        (["--dedup=none", "--workers", "4"], {"dedup": "none", "workers": 4}),
    ],
)
def test_flags_give_options(argv: list[str], changed: dict[str, object]) -> None:
    assert read(*argv) == (WudaoOptions(**changed), [])  # type: ignore[arg-type]  # a table of any option


def test_what_stands_behind_two_dashes_goes_on_word_for_word() -> None:
    behind = ["--checkpointing_interval=5000", "--seed", "9", "--", "stray"]
    options, flags = read("--seed", "1", "--runner=FlinkRunner", "--", *behind)
    assert options == WudaoOptions(seed=1)
    assert flags == ["--runner=FlinkRunner", "--", *behind]
