"""The configuration of a run: `TrainConfig`, and `RunConfig`, which fine-tuning shares.

A default of None leaves the value to the DeepSpeed JSON or the model. FIXED options must stay the
same when a run resumes. REPORTED options may change, and a line reports it. No flag is a prefix of
a launcher's flags, because the launcher's argparse would read it as its own flag even after the
name of the script.
"""

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from shards.commands.command import Parser
from shards.commands.flags import (
    count,
    flag_of,
    help_of,
    local_path,
    option,
    options_of,
    positive,
)
from shards.errors import UserError
from shards.manifest import NAME
from shards.sampling.mixture import parse_blend
from shards.sampling.plan import BATCH, DATA, END, FIXED, DataConfig
from trainer.command import RankCommand, with_recipe
from trainer.deepspeed import (
    AUTO,
    BF16,
    CONFIGS,
    FP16,
    FP32,
    adam_of,
    batch_size_of,
    presets,
    read_json,
)
from trainer.import_weights.config_json import shape_at, shape_named
from trainer.model.sizes import SIZES, ModelConfig
from trainer.schedule import CONSTANT, COSINE, LINEAR, Schedule

MODEL = "model"
OPTIMIZER = "learning rate and optimizer"
CHECKPOINTS = "checkpoints"
VALIDATION = "validation, tasks and samples"
LOG = "logging and failures"
"""Titles in `--help`, in addition to the titles DATA, END and BATCH of a run's flags."""
EPOCH = "epoch"
"""The value of `save_every` and `eval_every` that means once per epoch."""
RESUME_AUTO, RESUME_NONE = "auto", "none"
REPORTED: Mapping[str, bool] = {"reported": True}
"""Metadata of options that may change when a run resumes; a change is reported."""


def number(meaning: str, holds: Callable[[float], bool]) -> Callable[[str], float]:
    """Return a function that parses a flag's text as a number and checks a condition.

    Args:
        meaning: The description of the number in messages, such as "a number above 0".
        holds: The condition, which must be false for NaN.
    """

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not holds(value):
            raise argparse.ArgumentTypeError(f"{text!r} is not {meaning}")
        return value

    return read


non_negative = number("a number from 0 on", lambda x: 0 <= x < math.inf)
above_zero = number("a number above 0, as in 1 or 0.5", lambda x: 0 < x < math.inf)
fraction = number("a number from 0 to below 1", lambda x: 0 <= x < 1)


def run_folder(text: str) -> Path:
    """Parse the folder of a run's checkpoints, which must not be a dataset."""
    folder = local_path(text)
    if (folder / NAME).is_file():
        raise argparse.ArgumentTypeError(
            f"{text} is a dataset ({NAME}), and a run would write among its files: give another "
            "folder"
        )
    return folder


def _or_epoch(steps: Callable[[str], int]) -> Callable[[str], int | str]:
    """Return a function that parses a flag's text as a number of steps or as EPOCH."""

    def read(text: str) -> int | str:
        return text if text == EPOCH else steps(text)

    return read


@dataclass(frozen=True, kw_only=True)
class RunConfig(RankCommand):
    """The flags that training and fine-tuning share."""

    RECIPES: ClassVar[Path]
    """The folder of the command's recipes."""

    model: str = option("", metavar="NAME", group=MODEL)
    """Shape of the model: a name (tiny, glm-large, ...) or FILE.json. Default: the shape of
    --init-from."""
    init_from: Path | None = option(None, metavar="PATH", type=local_path)
    """Initial weights: a published checkpoint, or one of this trainer."""
    tokenizer: str | None = option(None, metavar="SPEC")
    """Tokenizer of the model's data, as for the pipelines (sentencepiece:FILE, tiktoken:NAME,
    hf:FILE). Default: the one recorded in the data."""
    dropout: float | None = option(None, metavar="P", type=fraction)
    """Dropout probability, which replaces those of the model."""
    deepspeed: Mapping[str, Any] | None = option(None, metavar="FILE", type=read_json, group=BATCH)
    """DeepSpeed's JSON configuration: a file, or the name of a preset."""
    precision: str | None = option(None, choices=(AUTO, BF16, FP16, FP32))
    """Precision of the computation. Default: the precision in DeepSpeed's JSON, else the best that
    the device supports."""
    micro_batch: int | None = option(None, type=positive)
    """Number of samples that each rank computes at once."""
    checkpoint_activations: bool = option(False)
    """Recompute layers in the backward pass to save memory."""
    no_compile: bool = option(False)
    """Do not use torch.compile, which compiles layers and loss on GPUs from Ampere on, at ZeRO 0 to
    2."""
    deterministic: bool = option(False)
    """Use deterministic kernels only. On a GPU, a resumed run is then bit-for-bit the same as an
    uninterrupted one, but slower."""
    lr: float = option(1e-4, metavar="LR", type=float, group=OPTIMIZER, metadata=REPORTED)
    """Peak learning rate."""
    schedule: str = option(COSINE, choices=(COSINE, LINEAR, CONSTANT), metadata=REPORTED)
    """How the learning rate decays."""
    warmup: float = option(0.05, metavar="N", type=non_negative, metadata=REPORTED)
    """Warm-up steps; a value below 1 is a share of the decay steps."""
    decay_steps: int | None = option(None, type=positive, metadata=REPORTED)
    """Step at which the decay ends. Default: the last step."""
    lr_floor: float = option(0.1, metavar="F", type=float, metadata=REPORTED)
    """Final learning rate, as a share of --lr."""
    betas: tuple[float, ...] = option(
        (0.9, 0.95), metavar="B", nargs=2, type=fraction, metadata=REPORTED
    )
    """AdamW betas."""
    eps: float = option(1e-8, metavar="EPS", type=above_zero, metadata=REPORTED)
    """AdamW epsilon."""
    weight_decay: float = option(0.1, metavar="F", type=non_negative, metadata=REPORTED)
    """Weight decay of all weights except biases and LayerNorms."""
    save: Path | None = option(None, metavar="DIR", type=run_folder, group=CHECKPOINTS)
    """Folder for checkpoints and logs, which all nodes must share."""
    resume: str = option(RESUME_AUTO, metavar="WHAT")
    """auto: resume from the newest complete checkpoint in --save, if there is one. none: start a
    new run; --save must contain none. DIR: resume from a run's folder or one of its checkpoints."""
    save_every: int | str = option(1000, metavar="N", type=_or_epoch(positive))
    """Steps between checkpoints; epoch: save at the end of each epoch."""
    keep: int = option(3, type=positive)
    """Number of checkpoints to keep."""
    log_every: int = option(10, type=positive, group=LOG)
    """Steps between log lines."""
    max_bad_losses: int = option(10, type=positive)
    """Stop after this many steps in a row whose loss or gradients are NaN or infinite."""
    profile: bool = option(False)
    """Write a profiler trace of steps 6 to 8 after the start."""

    @classmethod
    def parser(cls, program: str) -> Parser:
        """Return the parser of the command."""
        parser = super().parser(program)
        names = ", ".join(presets("args", folder=cls.RECIPES))
        parser.add_argument("--recipe", metavar="NAME", help=f"Read flags from a recipe: {names}.")
        return parser

    @classmethod
    def read(cls, words: Sequence[str], program: str) -> Self:
        """Read the configuration from a command line: its recipe, its flags and its JSON.

        Raises:
            UserError: A flag is unknown, or a value is invalid.
        """
        finder = Parser(prog=program, add_help=False)
        finder.add_argument("--deepspeed", type=read_json, default={})
        found, rest = finder.parse_known_args(
            with_recipe(words, folder=cls.RECIPES, program=program)
        )
        flags = [*_adam_flags(found.deepspeed), *rest]
        values = vars(cls.parser(program).parse_args(flags))
        for one in fields(cls):
            if one.default is MISSING and one.name not in values:
                shown = f"{flag_of(one.name)} {one.metadata['flag']['metavar']}"
                raise UserError(f"{shown} is missing: {help_of(one, cls)}")
        return cls(**options_of(cls, {**values, "deepspeed": found.deepspeed}))

    def schedule_of(self, steps: int) -> Schedule:
        """Return the schedule of the learning rate for a run with this number of steps."""
        decay = self.decay_steps or steps
        return Schedule(
            peak=self.lr,
            shape=self.schedule,
            warmup=round(self.warmup * decay if self.warmup < 1 else self.warmup),
            decay=decay,
            floor=self.lr_floor,
        )


def fixed_options(config: RunConfig) -> dict[str, Any]:
    """Return the options that must stay the same when a run resumes, by name, as JSON."""
    return _options_with(config, FIXED)


def reported_options(config: RunConfig) -> dict[str, Any]:
    """Return the options that may change when a run resumes, by name, as JSON."""
    return _options_with(config, REPORTED)


def _options_with(config: RunConfig, metadata: Mapping[str, bool]) -> dict[str, Any]:
    marked = (one.name for one in fields(config) if metadata.items() <= one.metadata.items())
    values = {name: getattr(config, name) for name in marked}
    return {name: list(x) if isinstance(x, tuple) else x for name, x in values.items()}


def _adam_flags(deepspeed: Mapping[str, Any]) -> list[str]:
    """Return the options of the optimizer in DeepSpeed's JSON, as flags."""
    words = []
    for name, value in adam_of(deepspeed).items():
        values = value if isinstance(value, list) else [value]
        words += [f"--{name.replace('_', '-')}", *map(str, values)]
    return words


@dataclass(frozen=True, kw_only=True)
class TrainConfig(RunConfig, DataConfig):
    """A training run."""

    USAGE = "%(prog)s --data DIR --model NAME --batch-size N [--epochs N] [--save DIR] [FLAG ...]"
    GROUPS = (DATA, MODEL, END, BATCH, OPTIMIZER, CHECKPOINTS, VALIDATION, LOG)
    RECIPES = CONFIGS

    extend_positions: bool = option(False, group=MODEL)
    """Give the model more positions than --init-from has; its positions come first."""
    blanks: tuple[str, ...] = option(
        (), metavar="NAME=VALUE", nargs="+", action="extend", group=DATA
    )
    """Options of blank infilling, such as bert_prob=0.5; trainer/blanks/objective.py lists them."""
    isolate_documents: bool = option(False, metadata=FIXED)
    """Mask attention between the documents of a window."""
    follow: bool = option(False)
    """Every --save-every steps, with or without --save, switch to the newest manifests of growing
    datasets."""
    max_steps: int | None = option(None, type=count, group=END)
    """Same as --steps."""
    max_tokens: int | None = option(None, type=positive)
    """Stop after this many tokens (samples x --length) instead of --max-steps."""
    epochs: float | None = option(None, metavar="N", type=above_zero)
    """Stop after this many epochs; an epoch has as many samples as the data have windows. Default:
    1, without --max-steps and --max-tokens."""
    eval_every: int | str = option(1000, metavar="N", type=_or_epoch(count), group=VALIDATION)
    """Steps between validations; 0: none; epoch: validate at the end of each epoch."""
    eval_samples: int = option(1024, type=count)
    """Number of windows per validation, always the same ones, spread over all validation data; 0:
    all."""
    eval_task: tuple[str, ...] = option((), metavar="NAME=FILE", action="append")
    """Also run a benchmark at every --eval-every, as hellaswag=FILE; may be repeated (docs/using.md
    lists the benchmarks)."""
    sample_every: int = option(0, type=count)
    """Steps between texts that the model generates from --sample-prompts; 0: none."""
    sample_prompts: Path | None = option(None, metavar="FILE", type=local_path)
    """File of prompts, as for trainer.generate; rank 0 reads it."""
    sample_tokens: int = option(64, type=positive)
    """Maximum number of tokens per blank of these texts."""

    @property
    def counts_epochs(self) -> bool:
        """Whether any option depends on the size of an epoch."""
        return self.epochs is not None or EPOCH in (self.save_every, self.eval_every)

    def __post_init__(self) -> None:
        if self.extend_positions and self.init_from is None:
            raise UserError("--extend-positions needs --init-from PATH: give both.")
        if self.eval_task and not self.eval_every:
            raise UserError("--eval-task runs at every --eval-every, which is 0: set it above 0.")
        if (self.sample_every > 0) is (self.sample_prompts is None):
            raise UserError(
                "--sample-every N, the steps between samples, and --sample-prompts FILE belong "
                "together: give both."
            )

    @property
    def model_name(self) -> str:
        """The model's name in messages."""
        return self.model or str(self.init_from)

    @cached_property
    def shape(self) -> ModelConfig:
        """The shape of the model that --model names, or that --init-from describes."""
        folder = self.init_from
        if self.model:
            shape: ModelConfig | None = shape_named(self.model)
        else:
            shape = None if folder is None else shape_at(folder)
        if shape is None:
            start = (
                f"--init-from {folder} does not contain the shape of its model. Choose"
                if folder
                else "choose"
            )
            raise UserError(
                f"{start} the model to train: --model NAME, one of {', '.join(SIZES)}, or "
                "FILE.json."
            )
        if self.dropout is None:
            return shape
        return replace(shape, hidden_dropout=self.dropout, attention_dropout=self.dropout)

    def prepared(self, *, world: int) -> Self:
        """Return the run with all options set, except the steps if --epochs sets the end.

        Args:
            world: The number of ranks.

        Raises:
            UserError: A flag is missing, or a value is invalid.
        """
        positions, config = self.shape.max_positions, self._with_end()
        size = batch_size_of(self.deepspeed or {}, self.micro_batch, world=world)
        config = replace(
            config,
            length=positions if self.length is None else self.length,
            batch_size=self.batch_size or (() if size is None else (str(size),)),
        )
        if config.max_tokens is not None:
            uncapped = replace(config, steps=1, max_epochs=()).sampling_plan()
            last = uncapped.step_of((config.max_tokens - 1) // uncapped.length)
            config = replace(config, steps=last + 1)
        for mix in config.sampling_plan().mixes:
            parse_blend(mix)  # reports unreadable data immediately
        return config

    def _with_end(self) -> Self:
        """Return the run, which ends after one epoch if no flag sets its end.

        Raises:
            UserError: Several flags set the end, or the flags for the data leave epochs undefined.
        """
        steps = self.steps if self.max_steps is None else self.max_steps
        ends = {"--max-steps": steps, "--max-tokens": self.max_tokens, "--epochs": self.epochs}
        given = [flag for flag, value in ends.items() if value is not None]
        if len(given) > 1:
            raise UserError(f"{' and '.join(given)} each set the end of the run: give one of them.")
        without_epochs = {
            "--follow takes text that is not there yet": self.follow,
            "--data-from changes the data on the way": self.data_from,
            "--max-epochs caps how often text is read until the run ends": self.max_epochs,
        }
        epochs = self.epochs if given else 1.0
        for why, is_given in without_epochs.items():
            if is_given and epochs is not None:
                raise UserError(
                    f"{why}: set the end of the run with --max-steps N or --max-tokens N."
                )
        return replace(self, steps=steps, epochs=epochs)
