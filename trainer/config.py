"""The command line of a training run.

    --recipe NAME  ──▶ flags of configs/NAME.args ─┐
    command line   ──▶ flags, which come later ────┼─▶ Settings, Run
    --deepspeed    ──▶ what neither says ──────────┘

What decides the samples is a `shards.run.Run`; how it trains stands in `Settings`.
"""

import argparse
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shards.command import Parser
from shards.errors import UserError
from shards.flags import add_flags, count, options_of
from shards.mixture import parse_data
from shards.run import Run
from shards.run_flags import BATCH, DATA, END, add_run_flags, run_of
from shards.spelling import expected
from trainer.deepspeed_json import (
    CONFIGS,
    adam_of,
    batch_size_of,
    presets,
    read_json,
)
from trainer.json_file import is_file
from trainer.model.sizes import SIZES, ModelConfig
from trainer.old_spellings import TRAIN
from trainer.settings import MODEL, Settings


@dataclass(frozen=True, kw_only=True)
class Config:
    """A run as the command line describes it."""

    run: Run
    """What it trains on; `steps` is set."""
    settings: Settings
    shape: ModelConfig
    """Of the model, as `--model` says."""
    deepspeed: Mapping[str, Any]
    """DeepSpeed's settings as they were given, checked."""


def parse(argv: Sequence[str], *, world: int, program: str = "trainer.train") -> Config:
    """Return the run that a command line describes.

    Args:
        argv: The command line.
        world: The number of ranks.
        program: The name of the command.

    Raises:
        UserError: A flag is unknown, or a value is invalid.
    """
    given = vars(_parser(program).parse_args(with_recipe(argv)))
    if "model" not in given:
        raise UserError(
            f"say which model to train: --model NAME, one of {', '.join(SIZES)}, or FILE.json."
        )
    content = read_json(given["deepspeed"]) if "deepspeed" in given else {}
    values = {**adam_of(content), **given}
    settings = Settings(**options_of(Settings, values))
    shape = ModelConfig.named(settings.model)
    if settings.dropout is not None:
        rate = settings.dropout
        shape = replace(shape, hidden_dropout=rate, attention_dropout=rate)
    given.setdefault("length", shape.max_positions)
    size = batch_size_of(content, settings.micro_batch, world=world)
    if size is not None:
        given.setdefault("batch_size", [str(size)])
    return Config(run=_with_end(given, settings), settings=settings, shape=shape, deepspeed=content)


def _with_end(given: Mapping[str, Any], settings: Settings) -> Run:
    """Return the run with its number of steps, from --max-steps or --max-tokens."""
    steps = given.get("steps")
    if (steps is None) == (settings.max_tokens is None):
        raise UserError("say when the run ends: either --max-steps N or --max-tokens N.")
    if steps is None and settings.max_tokens is not None:
        given = {**given, "steps": 1}
        uncapped = run_of(argparse.Namespace(**{**given, "max_epochs": []}))
        steps = uncapped.step_of((settings.max_tokens - 1) // uncapped.length) + 1
    run = run_of(argparse.Namespace(**{**given, "steps": steps}))
    for mix in run.mixes:
        for text in mix.data:
            parse_data(text)  # reports at once what cannot be read from here
    return run


def with_recipe(argv: Sequence[str], *, folder: Path = CONFIGS) -> list[str]:
    """Return the command line behind the flags of its recipe, so that its own flags win.

    Args:
        argv: the command line.
        folder: of the recipes that have names.

    Raises:
        UserError: there is no such recipe.
    """
    finder = Parser(add_help=False)
    finder.add_argument("--recipe")
    known, rest = finder.parse_known_args(list(argv))
    if known.recipe is None:
        return list(argv)
    path = next(filter(is_file, (Path(known.recipe), folder / f"{known.recipe}.args")), None)
    if path is None:
        raise UserError(
            f"--recipe {known.recipe}: there is no such file, and no recipe of that name: "
            f"{expected(known.recipe, presets('args', folder=folder))}."
        )
    flags = shlex.split(path.read_text("utf-8"), comments=True)
    end, _ = _split_end(rest)
    return [*(flags if end is None else _split_end(flags)[1]), *rest]


def _split_end(flags: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the value of the flag that ends the run, None without one, and the other flags."""
    finder = Parser(add_help=False)
    finder.add_argument("--steps", "--max-steps", "--max-tokens", dest="end")
    known, rest = finder.parse_known_args(list(flags))
    return known.end, rest


def _parser(program: str) -> Parser:
    parser = Parser(
        prog=f"python -m {program}",
        usage="%(prog)s --data DIR --model NAME --batch-size N --max-steps N [--save DIR] "
        "[FLAG ...]",
        description="Trains GLM on token shards.",
        old=TRAIN,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument(
        "--recipe", metavar="NAME", help=f"flags of a file: {', '.join(presets('args'))}"
    )
    for title in (DATA, MODEL, END, BATCH):  # in this order, whichever flag comes first
        parser.group(title)
    add_run_flags(parser)
    parser.group(END).add_argument(
        "--max-steps", dest="steps", type=count, metavar="N", help="as --steps"
    )
    add_flags(parser, Settings)
    # DeepSpeed's launcher gives it to every process; the environment says the same.
    parser.add_argument("--local_rank", "--local-rank", help=argparse.SUPPRESS)
    return parser
