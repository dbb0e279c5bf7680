"""No command shows or writes the secret of an odd address, whichever option it is given to."""

import importlib
import importlib.util
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path

import pytest

from pipelines.corpus.options import Options
from pipelines.corpus.recipe import SAMPLE
from pipelines.run import command
from shards.command import REFUSED, exit_code
from shards.flags import flag_of
from trainer.config import parse

ROOT = Path(__file__).parents[1]
MODEL = f"sentencepiece:{SAMPLE / 'sample.model'}"
TRAIN = [
    "trainer.train",
    "--model",
    "tiny",
    "--max-steps",
    "1",
    "--batch-size",
    "1",
    "--data",
    "none",
]

FORMS = (
    "{scheme}://u:p@{secret}@host.invalid/x",
    "{scheme}://u:a/{secret}@host.invalid/x",
    "{scheme}://u:p?#;{secret}@host.invalid/x",
    "{scheme}://u:{secret}/'\" b@host.invalid:80/x",
    "{scheme}://host.invalid/x#sig={secret}",
    "{scheme}://host.invalid/x;sig={secret}",
    "{scheme}://host.invalid/x?a=b&X-Amz-Signature={secret}",
    "simplecache::{scheme}://u:{secret}@host.invalid/x",
    "{scheme}://host.invalid/https://u:{secret}@other.invalid/x",
)
"""Addresses that are refused before anybody is asked."""

COMMANDS = (
    *(
        ["pipelines.wudao", flag_of(field.name), kind]
        for field in fields(Options)
        if field.metadata["flag"].get("metavar") in ("PATH", "DIR", "FILE", "SPEC")
        for kind in (("{}", "hf:{}", "tiktoken:{}") if field.name == "tokenizer" else ("{}",))
    ),
    ["pipelines.wudao", "--tokenizer", MODEL, "--input", "a={}"],
    ["pipelines.wudao", "--tokenizer", MODEL, "--input", "a=pile:{}"],
    ["pipelines.wudao", "--flink_master={}", "--runner=FlinkRunner"],
    ["pipelines.wudao", "--workers", "{}"],
    ["pipelines.train_tokenizer", "--vocab-size", "300", "--output", "x.model", "--input", "{}"],
    ["pipelines.cp_wudao", "1", "{}", "toy"],
    ["pipelines.replay", "{}", "--output", "x"],
    ["pipelines.replay", "none", "--output", "{}"],
    ["pipelines.rethreshold", "{}"],
    ["pipelines.report", "{}"],
    ["pipelines.report", "none", "--output", "{}"],
    *(["shards", command, "{}"] for command in ("inspect", "verify", "stats", "prune", "compact")),
    ["shards", "place", "{}", "--to", "x"],
    ["shards", "remove", "{}", "--id", "a", "--dry-run"],
    ["shards", "remove", "x", "--dry-run", "--documents", "{}"],
    ["shards", "trace", "{}", "--step", "0"],
    ["shards", "trace", "--step", "0", "--data", "{}", "--batch-size", "1"],
    ["shards", "trace", "--step", "0", "--data", "{}=0.5", "--batch-size", "1"],
    ["shards", "place", "none", "--to", "{}"],
    ["shards", "remove", "none", "--id", "a", "--dry-run", "--report", "{}"],
    ["shards", "remove", "none", "--id", "a", "--dry-run", "--run", "{}"],
    ["pipelines.train_tokenizer", "--vocab-size", "300", "--input", "none", "--output", "{}"],
    ["pipelines.cp_wudao", "1", "none", "{}"],
    ["trainer.plot", "{}"],
    ["trainer.plot", "none", "--output", "{}"],
    *([*TRAIN, flag, "{}"] for flag in ("--save", "--init-from", "--data", "--deepspeed")),
    *([*TRAIN, flag, "{}"] for flag in ("--recipe", "--model")),
)


def address(seed: int) -> tuple[str, str]:
    """Return an odd address, and the secret in it."""
    choices = random.Random(seed)
    secret = "".join(choices.choices("ABCdef0123456789", k=12))
    scheme = choices.choice(("https", "http", "HTTPS", "s3", "gs", "memory"))
    return choices.choice(FORMS).format(scheme=scheme, secret=secret), secret


def traces(folder: Path, secret: str) -> list[Path]:
    """Return what has a secret in its name or content below a folder."""
    return [
        path
        for path in folder.rglob("*")
        if secret in path.name or (path.is_file() and secret.encode() in path.read_bytes())
    ]


def main_of(module: str) -> Callable[[list[str]], int]:
    """Return the function that runs a command in this process."""
    if module == "pipelines.wudao":
        return partial(command.main, module)
    if module == "trainer.train":
        return lambda argv: exit_code(module, lambda: parse(argv, world=1) and None, stopped="")
    room = importlib.import_module(module)
    if hasattr(room, "__path__"):
        room = importlib.import_module(f"{module}.__main__")
    main: Callable[[list[str]], int] = room.main
    return main


SLOW = {number for number, words in enumerate(COMMANDS) if "--runner=FlinkRunner" in words}
"""It loads Beam."""


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(
            number, id=" ".join(words[:3]), marks=[pytest.mark.slow] if number in SLOW else []
        )
        for number, words in enumerate(COMMANDS)
    ],
)
def test_no_option_shows_a_secret(
    number: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    module, *words = COMMANDS[number]
    main = main_of(module)
    for seed in range(100 * number, 100 * number + 4):
        url, secret = address(seed)
        argv = [word.replace("{}", url) for word in words]
        monkeypatch.setattr(sys, "argv", [module, *argv])
        assert main(argv) == REFUSED, argv
        shown = capfd.readouterr()
        assert shown.err.count("\n") == 1
        assert len(shown.err) > 20
        assert secret.lower() not in (shown.out + shown.err).lower(), argv
        assert traces(tmp_path, secret) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 5, 12])
def test_no_process_shows_a_secret(number: int, tmp_path: Path) -> None:
    module, *words = COMMANDS[number]
    url, secret = address(number)
    done = subprocess.run(
        [sys.executable, "-m", module, *(word.replace("{}", url) for word in words)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HF_TOKEN": f"{secret}{secret}"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == REFUSED
    assert done.stderr
    assert secret.encode() not in done.stdout + done.stderr
    assert traces(tmp_path, secret) == []
