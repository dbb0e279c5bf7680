import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from pipelines.corpus.options import GROUPS, OWN
from pipelines.run.command import corpus_command
from pipelines.wudao import RECIPE, WudaoOptions
from shards.errors import UserError
from shards.flags import REST


def read(*argv: str) -> WudaoOptions:
    return WudaoOptions.parse(argv, "python -m pipelines.wudao")


def test_no_flag_gives_the_defaults() -> None:
    assert read() == WudaoOptions()


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
    assert read(*argv) == WudaoOptions(**changed)  # type: ignore[arg-type]  # a table of any option


@pytest.mark.parametrize(
    "beam",
    [
        ["--runner=FlinkRunner", "--flink_master=host:8081"],
        ["--runner", "PrismRunner"],
        ["--direct_num_workers=2", "--save_main_session"],
    ],
)
def test_flags_of_beam_are_handed_on(beam: list[str]) -> None:
    options = read("--seed=3", *beam, "--min-chars=5")
    assert options == WudaoOptions(seed=3, min_chars=5, engine=tuple(beam))


def test_what_stands_behind_two_dashes_goes_on_word_for_word() -> None:
    behind = ["--checkpointing_interval=5000", "--seed", "9", "--", "stray"]
    options = read("--seed", "1", "--runner=FlinkRunner", "--", *behind)
    assert options == WudaoOptions(seed=1, engine=("--runner=FlinkRunner", *behind))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--seed", "-1"], r"^--seed: '-1' is not a whole .*\. .* --help lists every flag"),
        (["--sample", "2"], "^--sample: '2' is not a share: a number from 0 to 1"),
        (["--workers=0"], "^--workers: 0 is not at least 1"),
        (["--dedup=fuzzy"], "^--dedup fuzzy: give one of none, exact, minhash\\."),
        (["--split-bytes=1.5M"], "^--split-bytes: '1.5M' is not a whole number"),
        (
            ["--input"],
            r"^--input: expected one argument\. python -m pipelines.wudao --help",
        ),
        (["--validation", "0.2"], "--validation 0.2 holds out more than 5 %"),
        (["--languages="], "--languages names no language"),
    ],
)
def test_flags_that_will_not_do_are_refused_by_name(argv: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(*argv)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--tokeniser", "x"], r"^unknown flag --tokeniser: did you mean --tokenizer\? python -m "),
        (["--ouput=x", "--seed", "x"], r"^unknown flag --ouput: did you mean --output\?"),
        (["--shard_tokens", "3M"], r"did you mean --shard-tokens\?"),
        (["--tokenizer_type", "x"], r"--tokenizer_type: here --tokenizer sentencepiece:"),
        (["-i", "x"], r"^unknown flag -i: here --input PATH\."),
    ],
)
def test_what_can_be_no_flag_of_beam_is_refused_without_it(
    argv: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pipelines.engine.cluster", None)
    with pytest.raises(UserError, match=message):
        read(*argv)


def test_unknown_flags_of_ours_and_of_beam_are_told_together() -> None:
    argv = ("--train-data", "x", "--job_endpont=h:1", "--frobnicate", "--runner=PrismRunner")
    with pytest.raises(UserError) as refused:
        read(*argv, "--parallelism", "2", "--", "--zork")
    assert str(refused.value).splitlines() == [
        "unknown flags:",
        "  --train-data: here --input PATH",
        "  --job_endpont: did you mean --job_endpoint?",
        "  --frobnicate",
        "  Beam's Python SDK does not have it either; what only the runner knows goes behind --, "
        "as in: -- --checkpointing_interval=5000. python -m pipelines.wudao --help lists every "
        "flag",
    ]


def test_help_begins_with_the_flags_of_the_corpus_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        corpus_command("pipelines.wudao").parse(["--help"], "python -m pipelines.wudao")
    lines = capsys.readouterr().out.splitlines()
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["options:", *(f"{title}:" for title in GROUPS)]
    assert titles[1] == f"{OWN}:"
    flags = [line.split()[0] for line in lines if line.startswith("  --")]
    assert flags[:4] == ["--title", "--title-separator", "--min-chars", "--input"]


def test_help_tells_of_every_flag_and_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        corpus_command("pipelines.wudao").parse(["--help"], "python -m pipelines.wudao")
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    for each in fields(WudaoOptions):
        if each.metadata["named"] == REST:
            continue
        assert re.search(rf"^  --{each.name.replace('_', '-')}\b", shown, re.MULTILINE)
    plain = " ".join(shown.split())
    assert RECIPE.about in plain
    for default in ("100000000", "zh,en", "exact", "0.001", "unless-repeated", "' '", "101"):
        assert f"Default: {default}." in plain
    assert "at most 5 %;" in plain
    assert "what follows -- goes to the runner" in plain
    assert "==SUPPRESS==" not in plain
