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

from shards.command import Parser, add_flags
from shards.errors import UserError
from shards.flags import count, options_of
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
from trainer.foreign_flags import FOREIGN_FLAGS
from trainer.json_file import is_file
from trainer.model.sizes import SIZES, ModelConfig
from trainer.settings import MODEL, Settings
from trainer.weights.config_json import CONFIG, is_hugging_face, shape_in


@dataclass(frozen=True, kw_only=True)
class Config:
    """A run as the command line describes it."""

    run: Run
    """What it trains on; `steps` is None before `trainer.start` where `--epochs` says the end."""
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
    _find_model(given)
    content = read_json(given["deepspeed"]) if "deepspeed" in given else {}
    values = {**adam_of(content), **given}
    settings = _with_epochs(Settings(**options_of(Settings, values)), given.get("steps"))
    shape = _shape_of(settings.model)
    if settings.dropout is not None:
        rate = settings.dropout
        shape = replace(shape, hidden_dropout=rate, attention_dropout=rate)
    given.setdefault("length", shape.max_positions)
    if "batch_size" not in given:
        given.update(_batch_size(content, settings.micro_batch, world=world))
    return Config(run=_with_end(given, settings), settings=settings, shape=shape, deepspeed=content)


def _find_model(given: dict[str, Any]) -> None:
    """Take the config.json of --init-from for the model, where no flag names one."""
    folder = given.get("init_from")
    if "model" not in given and folder is not None and is_hugging_face(folder):
        given["model"] = str(folder / CONFIG)
    if "model" not in given:
        raise UserError(
            f"say which model to train: --model NAME, one of {', '.join(SIZES)}, or FILE.json."
        )


def _shape_of(model: str) -> ModelConfig:
    path = Path(model)
    is_config = path.name == CONFIG and is_hugging_face(path.parent)
    return shape_in(path.parent) if is_config else ModelConfig.named(model)


def _with_epochs(settings: Settings, steps: int | None) -> Settings:
    """Return the settings with one epoch, where nothing else says when the run ends."""
    ends = {
        "--max-steps": steps,
        "--max-tokens": settings.max_tokens,
        "--epochs": settings.epochs,
    }
    said = [flag for flag, value in ends.items() if value is not None]
    if len(said) > 1:
        raise UserError(f"{' and '.join(said)} both say when the run ends: give one of them.")
    return settings if said else replace(settings, epochs=1.0)


def _batch_size(
    content: Mapping[str, Any], micros: Sequence[int] | None, *, world: int
) -> dict[str, list[str]]:
    """Return the flag of the batch size that DeepSpeed's settings or --micro-batch imply."""
    if micros is not None and len(micros) > 1:
        raise UserError(
            f"--micro-batch {','.join(map(str, micros))} is by node: give --batch-size N with it, "
            "a multiple of what all ranks compute at once."
        )
    size = batch_size_of(content, None if micros is None else micros[0], world=world)
    return {} if size is None else {"batch_size": [str(size)]}


def _with_end(given: Mapping[str, Any], settings: Settings) -> Run:
    """Return the run with its number of steps, from --max-steps or --max-tokens.

    Without either, None: the data say how many they are (`trainer.start`).
    """
    steps = given.get("steps")
    if settings.epochs is not None:
        _check_epochs(given)
    elif settings.max_tokens is not None:
        given = {**given, "steps": 1}
        uncapped = run_of(argparse.Namespace(**{**given, "max_epochs": []}))
        steps = uncapped.step_of((settings.max_tokens - 1) // uncapped.length) + 1
    run = run_of(argparse.Namespace(**{**given, "steps": steps}))
    for mix in run.mixes:
        for text in mix.data:
            parse_data(text)  # reports at once what cannot be read from here
    return run


def _check_epochs(given: Mapping[str, Any]) -> None:
    """Check that flags leave it to the size of the data when the run ends.

    Raises:
        UserError: they do not; the message names the flag.
    """
    odd = {
        "follow": "--follow takes text that is not there yet",
        "data_from": "--data-from changes the data on the way",
        "max_epochs": "--max-epochs caps how often text is read until the run ends",
    }
    for name, why in odd.items():
        if given.get(name):
            raise UserError(f"{why}: say when the run ends with --max-steps N or --max-tokens N.")


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
    finder.add_argument("--steps", "--max-steps", "--max-tokens", "--epochs", dest="end")
    known, rest = finder.parse_known_args(list(flags))
    return known.end, rest


def _parser(program: str) -> Parser:
    parser = Parser(
        prog=f"python -m {program}",
        usage="%(prog)s --data DIR --model NAME --batch-size N [--epochs N] [--save DIR] "
        "[FLAG ...]",
        description="Trains GLM on token shards.",
        old=FOREIGN_FLAGS,
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
