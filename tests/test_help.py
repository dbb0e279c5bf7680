"""What commands load before they have understood their command line: nothing that takes seconds."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "deepspeed", "apache_beam", "transformers", "datasets")
COMMANDS = (
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


def run(*words: str) -> tuple[int, str, str, set[str]]:
    """Return exit code, output and messages of a command, and the top-level modules it loaded."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    lines = done.stderr.splitlines(keepends=True)
    imports = [line for line in lines if line.startswith("import time:")]
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in imports}
    told = "".join(line for line in lines if line not in imports)
    return done.returncode, done.stdout, told, loaded


@pytest.mark.parametrize("command", COMMANDS)
def test_help_loads_nothing_heavy(command: str) -> None:
    code, output, told, loaded = run(command, "--help")
    assert (code, told) == (0, "")
    assert output.startswith(f"usage: python -m {command} ")
    assert "argparse" in loaded
    assert loaded.isdisjoint(HEAVY)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("shards", "place", "--scater", "2"), "--scatters"),
        (("pipelines.wudao", "--tokeniser", "x"), "--tokenizer"),
        (("trainer.train", "--max_steps", "3"), "--max-steps"),
        (("trainer.evaluate", "MODEL", "--tsk", "copa=x"), "--task"),
        (("trainer.generate", "MODEL", "--tempratur", "1"), "--temperature"),
    ],
    ids=lambda words: words[0],
)
def test_a_wrong_flag_is_told_before_anything_heavy_is_loaded(
    words: tuple[str, ...], meant: str
) -> None:
    code, output, told, loaded = run(*words)
    assert (code, output) == (2, "")
    assert re.match(rf"{words[0]}: unknown flag --\w+: did you mean {meant}\? python -m ", told)
    assert loaded.isdisjoint(HEAVY)
