"""The held-out text of a trained model's run."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from shards.errors import UserError
from shards.manifest import told_apart
from shards.mixture import Mix
from shards.records import from_json
from shards.run import CAUSAL, BatchSize, Run
from shards.switches import before_later_switches
from trainer.config import TrainConfig
from trainer.data import RunData, open_data
from trainer.import_weights.loaded_model import ModelSource


def held_out_run(origin: ModelSource, data: Sequence[str]) -> Run:
    """Return the run of a model at its step, on its data or on others.

    Args:
        origin: of the model.
        data: other ones, as `--data` has them; none: the run's own.

    Raises:
        UserError: the model is not one of a run, and fills blanks or has no data.
    """
    if not origin.state and origin.objective == CAUSAL:
        return _run_of_windows(origin, data)
    if not origin.state:
        raise UserError(
            f"{origin.path} does not say how its text was cut into windows and blanks. Give the "
            "flags of a run: --data DIR --batch-size N --max-steps 1 --init-from "
            f"{origin.path}."
        )
    if "progress" in origin.state:
        raise UserError(
            f"{origin.path} was fine-tuned by trainer.finetune: it has no held-out text. Give what "
            "it is to be asked: --task NAME=FILE."
        )
    with _state_of_run(origin):
        run = from_json(Run, origin.state["run"], where="run")
        if data:
            mixes = (Mix(start=0, data=tuple(data)),)
            run = replace(run, mixes=mixes, scatters=1, max_epochs={}, followed=None)
        return before_later_switches(run, run.position_of(origin.step or 0))


def _run_of_windows(origin: ModelSource, data: Sequence[str]) -> Run:
    """Return a run that reads a causal model's windows of data.

    Raises:
        UserError: there are no data.
    """
    if not data:
        raise UserError(f"{origin.path} does not say what it was trained on: give --data DIR.")
    return Run(
        mixes=(Mix(start=0, data=tuple(data)),),
        batches=(BatchSize(step=0, size=1),),
        objective=CAUSAL,
        length=origin.length or origin.shape.max_positions,
        steps=1,
    )


def open_held_out(origin: ModelSource, run: Run, *, eval_samples: int) -> RunData:
    """Return the data of a model's run, as it cut windows and made blanks.

    Args:
        origin: of the model.
        run: of `held_out_run`.
        eval_samples: windows that are read, as `--eval-samples`.

    Raises:
        UserError: the data cannot be read, or do not fit the model.
    """
    with _state_of_run(origin):
        config = _config_of(origin, eval_samples=eval_samples)
    opened = open_data(config, run, origin.shape)
    sha256 = origin.tokenizer.get("sha256", opened.tokenizer["sha256"])
    if opened.tokenizer["sha256"] != sha256:
        own = origin.tokenizer["name"], sha256
        other, trained = told_apart((opened.tokenizer["name"], opened.tokenizer["sha256"]), own)
        raise UserError(
            f"{opened.datasets[0].directory} was made with the tokenizer {other}, and "
            f"{origin.path} was trained with {trained}: the ids mean other text. Give data made "
            "with that one."
        )
    return opened


@contextmanager
def _state_of_run(origin: ModelSource) -> Iterator[None]:
    try:
        yield
    except (KeyError, ValueError) as error:
        raise UserError(
            f"{origin.path} does not hold the state of a run ({error}): bring its whole-*.json "
            "back as they were."
        ) from error


def _config_of(origin: ModelSource, *, eval_samples: int) -> TrainConfig:
    """Return what decides how the text of a run is read."""
    identity: dict[str, Any] = origin.state["identity"] if origin.state else {}
    blanks = identity.get("blanks") or {}
    return TrainConfig(
        model=str(origin.path),
        blanks=tuple(f"{name}={value}" for name, value in blanks.items()),
        isolate_documents=origin.isolate_documents,
        eval_samples=eval_samples,
    )
