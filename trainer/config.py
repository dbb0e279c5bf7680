"""A training run as its flags describe it.

What decides the samples is a `shards.run.Run`; how it trains stands in `Settings`.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from shards.errors import UserError
from shards.mixture import parse_data
from shards.run import Run
from trainer.deepspeed_json import batch_size_of
from trainer.model.sizes import SIZES, ModelConfig
from trainer.settings import Settings
from trainer.weights.config_json import CONFIG, is_hugging_face, shape_in


@dataclass(frozen=True, kw_only=True)
class Config:
    """A run as the command line describes it."""

    run: Run
    """What it trains on; `steps` is None before `trainer.start` where `--epochs` says the end."""
    settings: Settings
    shape: ModelConfig
    """Of the model, as `--model` says."""


def config_of(settings: Settings, *, world: int) -> Config:
    """Return the run that flags describe.

    Args:
        settings: The flags.
        world: The number of ranks.

    Raises:
        UserError: A flag is missing, or a value is invalid.
    """
    settings = _with_end(replace(settings, model=_model_of(settings)))
    shape = _shape_of(settings.model)
    if settings.dropout is not None:
        rate = settings.dropout
        shape = replace(shape, hidden_dropout=rate, attention_dropout=rate)
    length = shape.max_positions if settings.length is None else settings.length
    settings = replace(settings, length=length, batch_size=_batch_size(settings, world=world))
    if settings.max_tokens is not None:
        uncapped = replace(settings, steps=1, max_epochs=()).as_run()
        last = uncapped.step_of((settings.max_tokens - 1) // uncapped.length)
        settings = replace(settings, steps=last + 1)
    run = settings.as_run()
    for mix in run.mixes:
        for text in mix.data:
            parse_data(text)  # reports at once what cannot be read from here
    return Config(run=run, settings=settings, shape=shape)


def _model_of(settings: Settings) -> str:
    """Return what --model says, or the config.json of --init-from."""
    folder = settings.init_from
    if settings.model:
        return settings.model
    if folder is not None and is_hugging_face(folder):
        return str(folder / CONFIG)
    raise UserError(
        f"say which model to train: --model NAME, one of {', '.join(SIZES)}, or FILE.json."
    )


def _shape_of(model: str) -> ModelConfig:
    path = Path(model)
    is_config = path.name == CONFIG and is_hugging_face(path.parent)
    return shape_in(path.parent) if is_config else ModelConfig.named(model)


def _with_end(settings: Settings) -> Settings:
    """Return the flags with one epoch, where none says when the run ends.

    Raises:
        UserError: Several say it, or the data are such that they have no epochs.
    """
    steps = settings.steps if settings.max_steps is None else settings.max_steps
    ends = {
        "--max-steps": steps,
        "--max-tokens": settings.max_tokens,
        "--epochs": settings.epochs,
    }
    said = [flag for flag, value in ends.items() if value is not None]
    if len(said) > 1:
        raise UserError(f"{' and '.join(said)} both say when the run ends: give one of them.")
    settings = replace(settings, steps=steps, epochs=settings.epochs if said else 1.0)
    without_epochs = {
        "--follow takes text that is not there yet": settings.follow,
        "--data-from changes the data on the way": settings.data_from,
        "--max-epochs caps how often text is read until the run ends": settings.max_epochs,
    }
    for why, is_given in without_epochs.items():
        if is_given and settings.epochs is not None:
            raise UserError(f"{why}: say when the run ends with --max-steps N or --max-tokens N.")
    return settings


def _batch_size(settings: Settings, *, world: int) -> tuple[str, ...]:
    """Return --batch-size, or what --micro-batch and the DeepSpeed JSON imply."""
    micros = settings.micro_batch or ()
    if settings.batch_size:
        return settings.batch_size
    if len(micros) > 1:
        raise UserError(
            f"--micro-batch {','.join(map(str, micros))} is by node: give --batch-size N with it, "
            "a multiple of what all ranks compute at once."
        )
    size = batch_size_of(settings.deepspeed or {}, *micros or (None,), world=world)
    return () if size is None else (str(size),)
