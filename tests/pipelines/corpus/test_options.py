import argparse
import os
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from pipelines.corpus.options import DATASET, NOTHING, SEGMENTS, Options, semantic
from pipelines.corpus.values import count, fraction, names, positive
from pipelines.engine.workers import num_workers
from pipelines.wudao import WudaoOptions
from shards.errors import UserError


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (fraction, "0.05", 0.05),
        (fraction, "5%", 0.05),
        (fraction, "0.1%", 0.001),
        (fraction, "0", 0.0),
        (fraction, "1", 1.0),
        (fraction, "100%", 1.0),
        (count, "0", 0),
        (count, "12", 12),
        (count, "3k", 3_000),
        (count, "100M", 100_000_000),
        (count, "2G", 2_000_000_000),
        (positive, "1", 1),
        (positive, "1k", 1_000),
        (names, "zh,en", ("zh", "en")),
        (names, " zh , en,, zh", ("zh", "en")),
        (names, "", ()),
    ],
)
def test_values_are_read_as_people_write_them(
    read: Callable[[str], Any], text: str, value: Any
) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (fraction, "1.5", "1.5 is not between 0 and 1"),
        (fraction, "101%", "101% is not between 0 and 1"),
        (fraction, "-0.1", "-0.1 is not between 0 and 1"),
        (fraction, "nan", "nan is not between 0 and 1"),
        (count, "-1", "-1 is negative"),
        (count, "-2k", "-2k is negative"),
        (positive, "0", "0 is not at least 1"),
        (positive, "0M", "0M is not at least 1"),
    ],
)
def test_values_out_of_range_are_refused(
    read: Callable[[str], Any], text: str, message: str
) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"^{message}$"):
        read(text)


@pytest.mark.parametrize("read", [fraction, count, positive])
@pytest.mark.parametrize("text", ["", "a", "1.5M", "%", "k", "1kk"])
def test_no_numbers_are_no_values(read: Callable[[str], Any], text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read(text)


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
        "pii",
        "decontaminate",
        "url_blocklist",
        "keep_dropped",
        "dedup",
        "minhash_threshold",
        "title",
        "title_separator",
        "min_chars",
    },
    DATASET: {"clusters", "validation", "shards", "shard_tokens"},
    NOTHING: {
        "input",
        "output",
        "workers",
        "part",
        "plan",
        "max_reject_rate",
        "skip_poison",
        "keep_segments",
        "overwrite",
    },
}


@pytest.mark.parametrize("level", LEVELS)
def test_every_option_decides_what_it_should(level: str) -> None:
    assert {each.name for each in fields(WudaoOptions) if each.metadata["decides"] == level} == (
        LEVELS[level]
    )


def test_semantic_takes_the_levels_asked_for() -> None:
    for decides in ((SEGMENTS,), (DATASET,), (SEGMENTS, DATASET)):
        wanted = set().union(*(LEVELS[level] for level in decides))
        assert semantic(WudaoOptions(), {}, decides=decides).keys() == wanted


def test_semantic_is_plain_and_puts_facts_for_paths() -> None:
    options = WudaoOptions(tokenizer="sentencepiece:/home/someone/a.model", languages=("zh", "ja"))
    facts = {"tokenizer": "sha of the model", "lid_model": "sha of lid", "output": "never taken"}
    found = semantic(options, facts, decides=(SEGMENTS,))
    assert found["languages"] == ["ja", "zh"], "sorted: their order decides nothing"
    assert (found["tokenizer"], found["lid_model"]) == ("sha of the model", "sha of lid")
    assert "output" not in found
    assert semantic(options, facts, decides=(DATASET,)) == {
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
