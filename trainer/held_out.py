"""The held-out text of a trained model's run, read by the model alone, without an engine."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from shards.errors import UserError
from shards.manifest import told_apart
from shards.mixture import Mix
from shards.records import from_json
from shards.run import Run
from shards.switches import before_later_switches
from trainer.checkpoints.checkpoint import Checkpoint, read_checkpoint
from trainer.config import Config
from trainer.data import RunData, open_data
from trainer.loader import Tensors
from trainer.loss_tally import LossTally
from trainer.model.model import GLM
from trainer.settings import Settings
from trainer.step import micro_batches
from trainer.tasks.collate import placed
from trainer.trained import Origin


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOutReader:
    """A model in place of `Stepper`, where nothing is learnt."""

    model: GLM
    micro_batch: int
    """Windows that are computed at once."""

    def evaluate(self, batch: Tensors, tally: LossTally) -> LossTally:
        """Return a tally with the losses of a batch added."""
        device = self.model.word_embeddings.weight.device
        with torch.no_grad():
            for part in micro_batches(batch, self.micro_batch):
                tally = tally.plus(part, self.model.loss_sum(placed(part, device)))
        return tally


def open_held_out(origin: Origin, data: Sequence[str], *, eval_samples: int) -> RunData:
    """Return the data of a model's run, as it cut windows and made blanks.

    Args:
        origin: of the model.
        data: other ones instead, as `--data` has them; none: the run's own.
        eval_samples: windows that are read, as `--eval-samples`.

    Raises:
        UserError: the model is not one of a run, or the data cannot be read or do not fit it.
    """
    checkpoint = read_checkpoint(origin.path, rank=0, world=-1)
    if not isinstance(checkpoint, Checkpoint):
        raise UserError(
            f"{origin.path} does not say how its text was cut into windows and blanks. Give the "
            f"flags of a run: --data DIR --model NAME --batch-size N --max-steps 1 --init-from "
            f"{origin.path}."
        )
    if "tuning" in checkpoint.state:
        raise UserError(
            f"{origin.path} was fine-tuned by trainer.finetune: it has no held-out text. Give what "
            "it is to be asked: --task NAME=FILE."
        )
    try:
        run = _run(checkpoint, data)
        settings = _settings(origin, checkpoint, eval_samples=eval_samples)
    except (KeyError, ValueError) as error:
        raise UserError(
            f"{origin.path} does not hold the state of a run ({error}): bring its whole-*.json "
            "back as they were."
        ) from error
    config = Config(run=run, settings=settings, shape=origin.shape)
    opened = open_data(config)
    sha256 = origin.tokenizer["sha256"]
    if opened.tokenizer["sha256"] != sha256:
        own = origin.tokenizer["name"], sha256
        other, trained = told_apart((opened.tokenizer["name"], opened.tokenizer["sha256"]), own)
        raise UserError(
            f"{opened.datasets[0].directory} was made with the tokenizer {other}, and "
            f"{origin.path} was trained with {trained}: the ids mean other text. Give data made "
            "with that one."
        )
    return opened


def _run(checkpoint: Checkpoint, data: Sequence[str]) -> Run:
    """Return the run of a checkpoint, at its step, on its data or on others."""
    run = from_json(Run, checkpoint.state["run"], where="run")
    if data:
        mixes = (Mix(start=0, data=tuple(data)),)
        run = replace(run, mixes=mixes, scatters=1, max_epochs={}, followed=None)
    return before_later_switches(run, run.position_of(checkpoint.step))


def _settings(origin: Origin, checkpoint: Checkpoint, *, eval_samples: int) -> Settings:
    """Return the settings of a run that decide how its text is read."""
    identity: dict[str, Any] = checkpoint.state["identity"]
    blanks = identity["blanks"] or {}
    return Settings(
        model=str(origin.path),
        blanks=tuple(f"{name}={value}" for name, value in blanks.items()),
        isolate_documents=bool(identity["isolate_documents"]),
        eval_samples=eval_samples,
    )
