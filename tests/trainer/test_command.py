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


def run(work: str, *, rank: int = 0, flags: tuple[str, ...] = FLAGS) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(work=work, flags=flags)],
        env={"RANK": str(rank), "WORLD_SIZE": "2", "PATH": "/usr/bin:/bin"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "rank", "code", "error"),
    [
        ("print(config.run.steps); return 0", 1, 0, ""),
        ("raise UserError('my disk is full')", 1, 2, "trainer.cook: my disk is full\n"),
        ("raise AgreedError('no such run')", 0, 2, "trainer.cook: no such run\n"),
        ("raise AgreedError('no such run')", 1, 2, ""),
        ("raise KeyboardInterrupt", 0, 130, "\ntrainer.cook: stopped; no step was taken\n"),
        ("raise RuntimeError('a mistake')", 1, 1, "RuntimeError: a mistake\n"),
    ],
)
def test_an_error_that_all_ranks_know_is_reported_once(
    work: str, rank: int, code: int, error: str
) -> None:
    returned, output, reported = run(work, rank=rank)
    assert returned == code
    assert reported.endswith(error) if code == 1 else reported == error
    assert output == ("10\n" if "print" in work else "")


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_wrong_flag_is_reported_by_the_first_rank(rank: int) -> None:
    code, _, reported = run("return 0", rank=rank, flags=("--frobnicate",))
    assert code == 2
    assert (
        reported.startswith("trainer.cook: unknown flag --frobnicate")
        if rank == 0
        else not reported
    )
