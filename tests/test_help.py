"""Every command reads its command line before it imports slow libraries."""

import re

import pytest

from tests.python import ROOT, python

HEAVY = ("torch", "deepspeed", "apache_beam", "transformers", "datasets")
HELPED = (
    "shards",
    "pipelines.wudao",
    "pipelines.train_tokenizer",
    "pipelines.train_classifier",
    "pipelines.look",
    "trainer.train",
    "trainer.finetune",
    "trainer.evaluate",
    "trainer.generate",
    "trainer.export",
    "trainer.tasks",
)
MISTYPED = (
    "shards place --scater 2",
    "pipelines.wudao --tokeniser x",
    "trainer.train --max_steps 3",
    "trainer.evaluate MODEL --tsk copa=x",
    "trainer.generate MODEL --tempratur 1",
)


@pytest.mark.parametrize(
    ("words", "code"),
    [*((f"{command} --help", 0) for command in HELPED), *((words, 2) for words in MISTYPED)],
)
def test_nothing_heavy_is_loaded(words: str, code: int) -> None:
    done = python("-X", "importtime", "-m", *words.split(), at=ROOT)
    assert done.returncode == code, done.stderr
    pattern = (
        rf"^{words.split(maxsplit=1)[0]}: unknown flag --\w+: did you mean --"
        if code
        else "^usage: python"
    )
    assert re.search(pattern, done.stderr if code else done.stdout, re.MULTILINE)
    imports = re.findall(r"^import time:.*\| *(\w+)", done.stderr, re.MULTILINE)
    assert "argparse" in imports
    assert {*imports}.isdisjoint(HEAVY)
