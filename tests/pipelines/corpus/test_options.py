import json
import os
from dataclasses import fields

import pytest

from pipelines.corpus.options import DATASET, NOTHING, SEGMENTS, Options, semantic
from pipelines.engine.workers import num_workers
from pipelines.wudao import WudaoOptions
from shards.errors import UserError


def test_defaults_are_what_the_help_promises() -> None:
    options = Options()
    assert options.languages == ("zh", "en")
    assert options.sample == 1.0
    assert options.validation == 0.001
    assert options.dedup == "exact"
    assert options.shard_tokens == 100_000_000
    assert options.split_bytes == 128 * 2**20
    assert not options.keep_segments
    assert not options.overwrite


def test_at_most_five_per_cent_are_held_out() -> None:
    assert Options(validation=0.05).validation == 0.05
    with pytest.raises(UserError, match=r"^--validation 0\.2 holds out more than 5 % .* 0\.05$"):
        Options(validation=0.2)


def test_no_language_at_all_is_refused() -> None:
    with pytest.raises(UserError, match=r"--languages names no language; .* zh,en, or all"):
        Options(languages=())


@pytest.mark.parametrize(
    ("written", "value"), [("auto", "auto"), ("0", 0), ("1024", 1024), ("2k", 2000)]
)
def test_characters_that_decide_the_language(written: str, value: int | str) -> None:
    options = Options.parse(["--lid-chars", written], "p")
    assert options.lid_chars == value
    assert type(options.lid_chars) is type(value)
    recorded = semantic(options, {}, decides=(SEGMENTS,))["lid_chars"]
    assert json.dumps(recorded) == json.dumps(value)


@pytest.mark.parametrize("written", ["all", "-1", "1.5", "AUTO", ""])
def test_other_characters_are_refused(written: str) -> None:
    with pytest.raises(UserError, match=r"--lid-chars: .* is not a whole number .*, nor auto"):
        Options.parse([f"--lid-chars={written}"], "p")


LEVELS = {
    SEGMENTS: {
        "tokenizer",
        "languages",
        "language_threshold",
        "lid_model",
        "lid_chars",
        "sample",
        "seed",
        "split_bytes",
        "quality",
        "threshold",
        "classifier",
        "perplexity",
        "pii",
        "decontaminate",
        "url_blocklist",
        "bad_utf8",
        "nul",
        "max_record_bytes",
        "filter",
        "keep_dropped",
        "dedup",
        "title",
        "title_separator",
        "min_chars",
    },
    DATASET: {"minhash_threshold", "clusters", "validation", "shards", "shard_tokens"},
    NOTHING: {
        "engine",
        "input",
        "output",
        "workers",
        "part",
        "plan",
        "max_reject_rate",
        "skip_unreadable",
        "keep_segments",
        "overwrite",
        "append",
        "rehash",
        "allow_changed",
        "every_tokens",
        "watch",
        "every",
        "settle",
        "until",
    },
}


NEWER = {"filter", "classifier", "perplexity", "bad_utf8", "nul", "max_record_bytes"}
"""Options that older datasets do not have: recorded where they are given."""


@pytest.mark.parametrize("level", LEVELS)
def test_every_option_decides_what_it_should(level: str) -> None:
    assert {each.name for each in fields(WudaoOptions) if each.metadata["decides"] == level} == (
        LEVELS[level]
    )


def test_semantic_takes_the_levels_asked_for() -> None:
    for decides in ((SEGMENTS,), (DATASET,), (SEGMENTS, DATASET)):
        wanted = set().union(*(LEVELS[level] for level in decides)) - NEWER
        assert semantic(WudaoOptions(), {}, decides=decides).keys() == wanted


def test_a_newer_option_is_recorded_where_it_is_given() -> None:
    options = WudaoOptions(filter=("a:b",))
    assert semantic(options, {}, decides=(SEGMENTS,))["filter"] == ["a:b"]
    assert semantic(options, {"filter": {"1. a:b": "ff"}}, decides=(SEGMENTS,))["filter"] == {
        "1. a:b": "ff"
    }


def test_semantic_is_plain_and_puts_facts_for_paths() -> None:
    options = WudaoOptions(tokenizer="sentencepiece:/home/someone/a.model", languages=("zh", "ja"))
    facts = {"tokenizer": "sha of the model", "lid_model": "sha of lid", "output": "never taken"}
    found = semantic(options, facts, decides=(SEGMENTS,))
    assert found["languages"] == ["ja", "zh"], "sorted: their order decides nothing"
    assert (found["tokenizer"], found["lid_model"]) == ("sha of the model", "sha of lid")
    assert "output" not in found
    assert semantic(options, facts, decides=(DATASET,)) == {
        "minhash_threshold": 0.7,
        "clusters": "local",
        "validation": 0.001,
        "shards": 0,
        "shard_tokens": 100_000_000,
    }


@pytest.mark.parametrize(
    ("given", "cores", "megabytes", "started"),
    [
        (0, 8, 1, 0),
        (0, 8, 20, 2),
        (0, 8, 10_000, 8),
        (3, 8, 1, 3),
        (12, 2, 10_000, 12),
    ],
)
def test_small_inputs_start_few_workers(
    monkeypatch: pytest.MonkeyPatch, given: int, cores: int, megabytes: int, started: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    assert num_workers(given, work_bytes=megabytes << 20) == started
