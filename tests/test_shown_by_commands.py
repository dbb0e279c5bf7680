"""Commands print no control characters of texts and names, and write no secret to a file.

Every option of every command that takes a path or an address gets hostile values.
"""

import html
import itertools
import json
import random
import re
import sys
import unicodedata
from dataclasses import fields
from pathlib import Path

import pytest

import shards.__main__
from pipelines.corpus.options import Options
from pipelines.corpus.spec import SAMPLE
from shards.commands.command import EXIT_REFUSED, Invocation, exit_code
from shards.commands.flags import flag_of
from shards.commands.output import visible
from shards.console import run_module, run_package
from tests.python import ROOT, python
from tests.shards.datasets import put_odd
from trainer.config import TrainConfig

MODEL = f"sentencepiece:{SAMPLE / 'sample.model'}"
TRAIN = [
    *("trainer.train", "--model", "tiny", "--max-steps", "1", "--batch-size", "1"),
    *("--data", "none"),
]

FORMS = (
    "{scheme}://u:p@{secret}@host.invalid/x",
    "{scheme}://u:a/{secret}@host.invalid/x",
    "{scheme}://host.invalid/x#sig={secret}",
    "{scheme}://host.invalid/x;sig={secret}",
    "{scheme}://host.invalid/x?a=b&X-Amz-Signature={secret}",
    "simplecache::{scheme}://u:{secret}@host.invalid/x",
    "{scheme}://host.invalid/https://u:{secret}@other.invalid/x",
)
"""Addresses that contain secrets and are refused before any request."""

CLASSIFIER = ["pipelines.train_classifier"]

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
    [*CLASSIFIER, "--positive", "{}", "--negative", "none", "--output", "x.bin"],
    [*CLASSIFIER, "--positive", "none", "--negative", "none", "--output", "{}"],
    ["pipelines.cp_wudao", "1", "{}", "toy"],
    ["pipelines.look", "{}"],
    ["pipelines.look", "none", "{}", "--json"],
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
    ["shards", "megatron", "{}"],
    ["shards", "megatron", "none", "--output", "{}"],
    ["shards", "export", "{}", "--to", "olmo", "--output", "x"],
    ["shards", "export", "none", "--to", "olmo", "--output", "{}"],
    ["shards", "export", "none", "--to", "llm.c", "--output", "x", "--prefix", "{}"],
    ["shards", "remove", "none", "--id", "a", "--dry-run", "--report", "{}"],
    ["pipelines.train_tokenizer", "--vocab-size", "300", "--input", "none", "--output", "{}"],
    ["pipelines.cp_wudao", "1", "none", "{}"],
    ["trainer.plot", "{}"],
    ["trainer.plot", "none", "--output", "{}"],
    *([*TRAIN, flag, "{}"] for flag in ("--save", "--init-from", "--data", "--deepspeed")),
    *([*TRAIN, flag, "{}"] for flag in ("--recipe", "--model")),
    ["trainer.generate", "{}", "x"],
    *(
        ["trainer.generate", "none", "x", "--model", "tiny", flag, "{}"]
        for flag in ("--prompts", "--tokenizer", "--device")
    ),
)


def address(seed: int) -> tuple[str, str]:
    """Return a hostile address and the secret in it."""
    choices = random.Random(seed)
    secret = "".join(choices.choices("ABCdef0123456789", k=12))
    scheme = choices.choice(("https", "http", "HTTPS", "s3", "gs", "memory"))
    return choices.choice(FORMS).format(scheme=scheme, secret=secret), secret


def traces(folder: Path, secret: str) -> list[Path]:
    """Return the files below a folder that have a secret in their name or content."""
    return [
        path
        for path in folder.rglob("*")
        if secret in path.name or (path.is_file() and secret.encode() in path.read_bytes())
    ]


def run(module: str, argv: list[str]) -> int:
    """Run a command in this process; for `trainer.train`, only the code that reads the flags."""
    if module == "shards":
        return run_package(module, argv)
    if module == "trainer.train":
        return exit_code(
            Invocation(module), lambda: TrainConfig.read(argv, module).prepared(world=1) and None
        )
    return run_module(module, argv)


def is_slow(words: list[str]) -> bool:
    """Return whether a command imports Beam, or runs because any name of an output is valid."""
    return "--runner=FlinkRunner" in words or words == ["pipelines.wudao", "--output", "{}"]


EACH = pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, id=" ".join(words[:3]), marks=[pytest.mark.slow] * is_slow(words))
        for number, words in enumerate(COMMANDS)
    ],
)


HOSTILE = (
    "\x1b[2J", "\x1b]0;owned\x07", "\b\b\b", "\r", "\n", "\x7f", "\x9b31m", "\x85", "\u2028",
    "\u2029", "\u202e", "\u2066", "\u200f", "\u061c", "\u200b", "\u2060", "\ufeff", "\xad",
    "\U000e0041", "\ufff9", "\u180e", "\x0b", "\x0c", "\x1f",
)  # fmt: skip


def hostile(seed: int) -> str:
    """Return a name that consists of control characters and a few others."""
    choices = random.Random(seed)
    signs = [choices.choice((*HOSTILE, "a", "中", "é", "😀", " ")) for _ in range(8)]
    return f"x{choices.choice(HOSTILE)}{''.join(signs)}y"


def control_characters(text: str) -> set[str]:
    """Return the set of control characters of a text, except line breaks and tabs."""
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return {sign for sign in text if unicodedata.category(sign) in kinds} - {"\n", "\t"}


@EACH
def test_no_option_prints_control_characters_or_writes_a_secret(
    number: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    module, *words = COMMANDS[number]
    seeds = range(100 * number, 100 * number + 4)
    odd = [*map(address, seeds), *((f"none/{hostile(seed)}/none", "") for seed in seeds)]
    for given, secret in odd:
        argv = [word.replace("{}", given) for word in words]
        monkeypatch.setattr(sys, "argv", [module, *argv])
        code = run(module, argv)
        shown = capfd.readouterr()
        assert control_characters(shown.out + shown.err) == set(), argv
        if code or secret:
            assert (code, shown.err.count("\n")) == (EXIT_REFUSED, 1), argv
            assert len(shown.err) > 20
        else:  # otherwise any new name is valid
            assert words[-2] in ("--output", "--save", "--init-from", "--data", "--deepspeed")
        if secret:
            assert traces(tmp_path, secret) == []


def test_an_argument_that_is_not_utf8_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    for argv in (["inspect", "d\udcff"], ["remove", "d", "--id", "\udcff\x1b", "--dry-run"]):
        assert shards.__main__.main(argv) == EXIT_REFUSED
        shown = capfd.readouterr().err
        assert control_characters(shown) == set()
        assert re.search(r"the argument \S*\\xff\S* is not UTF-8: rename the file or folder", shown)


@pytest.mark.parametrize("seed", range(8))
def test_no_command_prints_control_characters_of_a_dataset(
    seed: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    numbers = itertools.count(1000 * seed)
    put_odd(tmp_path / "d", ("a\x1b", "\b", "b"), lambda: hostile(next(numbers)))
    data = ["--data", str(tmp_path / "d"), "--batch-size", "1", "--length", "16"]
    for code, *argv in (
        (0, "inspect", "d"),
        (0, "inspect", "d", "--doc", "0"),
        (0, "stats", "d"),
        (0, "verify", "d"),
        (0, "prune", "d"),
        (0, "place", "d", "--list"),
        (0, "trace", "--step", "0", *data),
        (0, "trace", "--document", "g0001-00/web/00000:1", *data),
        (EXIT_REFUSED, "trace", "--document", hostile(seed), *data),
        (0, "remove", "d", "--dry-run", "--url", "x*"),
        (0, "remove", "d", "--url", "x*", "--reason", hostile(seed)),
        (0, "inspect", "d"),
        (0, "compact", "d", "--erase"),
    ):
        words = [str(tmp_path / "d") if word == "d" else word for word in argv]
        assert shards.__main__.main(words) == code, argv
        shown = capfd.readouterr()
        assert control_characters(shown.out + shown.err) == set(), argv
        assert len(shown.out + shown.err) > 20


@pytest.mark.slow
def test_no_run_prints_control_characters_of_names_and_texts(tmp_path: Path) -> None:
    names = [hostile(seed).replace("/", "") for seed in range(9)]
    folder = tmp_path / names[0] / names[1]
    folder.mkdir(parents=True)
    words = (ROOT / "README.md").read_text("utf-8").split()
    records = [
        {"text": " ".join(words[i : i + 60]) + names[2], "about": names[i % 9], names[3]: names[4]}
        for i in range(60)
    ]
    lines = [json.dumps(record) for record in records] + [names[5], '{"text": "\\ud800"}']
    (folder / f"{names[6]}.jsonl").write_text("\n".join(lines), "utf-8")
    flags = "--workers 1 --text-field text --provenance about=about --languages all --dedup none"
    command = ["-m", "pipelines.text", "--input", tmp_path / names[0], *flags.split()]
    command += ["--tokenizer", MODEL, "--max-reject-rate", "1", "--output"]
    for plan in (["--plan"], []):
        done = python(*command, tmp_path / "d", *plan, at=tmp_path)
        shown = done.stdout + done.stderr
        assert done.returncode == 0, shown
        assert control_characters(shown) == set()
    page = (tmp_path / "d" / "report.html").read_text("utf-8")
    assert control_characters(page) == set()
    assert visible(names[6]) in html.unescape(page)
    assert json.loads((tmp_path / "d" / "report.json").read_text("utf-8"))
