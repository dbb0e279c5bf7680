"""Ctrl-C while a command imports its libraries."""

import subprocess
from pathlib import Path

import pytest

from tests.python import ROOT, python

INTERRUPTED = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)"


def interrupted(folder: Path, library: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run Python where a module in a library's place interrupts it."""
    (folder / f"{library}.py").write_text(INTERRUPTED)
    return python(*words, at=folder, PYTHONPATH=f"{folder}:{ROOT}")


@pytest.mark.parametrize(
    "command",
    [
        ("trainer.evaluate", "MODEL"),
        ("trainer.export", "MODEL", "--to=hf", "--output=there"),
        ("trainer.finetune", "--task=copa", "--data=x", "--init-from=y", "--save=z"),
        ("trainer.generate", "MODEL", "PROMPT"),
        ("trainer.train", "--data=x", "--model=tiny", "--batch-size=8", "--max-steps=1"),
        ("pipelines.wudao",),
        ("shards", "verify", "x"),
    ],
    ids=lambda command: command[0],
)
def test_it_ends_quietly(command: tuple[str, ...], tmp_path: Path) -> None:
    library = "torch" if command[0].startswith("trainer") else "numpy"
    done = interrupted(tmp_path, library, "-m", *command)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\n")


def test_a_command_that_has_begun_tells_what_it_left(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['-m']; import trainer\n"
        "from shards.command import exit_code\n"
        "def run(): import model\n"
        "sys.exit(exit_code('cook', run, stopped='the bread is in the oven'))"
    )
    done = interrupted(tmp_path, "model", "-c", code)
    expected = (130, "\ncook: stopped; the bread is in the oven\n")
    assert (done.returncode, done.stderr) == expected
