import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from shards.command import run_command
from shards.errors import UserError
from trainer.ranks import AgreedError, Ranks
from trainer.train import Train

class Alone:
    join = staticmethod(lambda: None)

import trainer.ranks
trainer.ranks.Ranks, trainer.ranks.leave = Alone, lambda: None

class Cook(Train):
    PROGRAM = "trainer.cook"
    WORK = "__main__:work"

def work(config, ranks):
    {work}

sys.exit(run_command(Cook, {flags!r}, program="trainer.cook"))
"""
FLAGS = ("--data", "x", "--model", "tiny", "--batch-size", "8", "--max-steps", "10")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "rank", "code", "told"),
    [
        ("print(config.run.steps); return 0", 1, 0, ""),
        ("raise UserError('my disk is full')", 1, 2, r"trainer\.cook: my disk is full\n"),
        ("raise AgreedError('no such run')", 0, 2, r"trainer\.cook: no such run\n"),
        ("raise AgreedError('no such run')", 1, 2, ""),
        ("raise KeyboardInterrupt", 0, 130, r"\ntrainer\.cook: stopped; no step was taken\n"),
        ("raise RuntimeError('a mistake')", 1, 1, r".*RuntimeError: a mistake\n"),
        # Here a flag is wrong.
        ("", 0, 2, r"trainer\.cook: unknown flag --frobnicate.*"),
        ("", 1, 2, ""),
    ],
)
def test_an_error_that_all_ranks_know_is_reported_once(
    work: str, rank: int, code: int, told: str
) -> None:
    script = SCRIPT.format(work=work or "pass", flags=FLAGS if work else ("--frobnicate",))
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"RANK": str(rank), "WORLD_SIZE": "2", "PATH": "/usr/bin:/bin"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, "10\n" if "print" in work else "")
    assert re.fullmatch(told, done.stderr, re.DOTALL), done.stderr
