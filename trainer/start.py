"""From a command line to an engine that is ready at a step: anew, or where a run was left.

Everything that can be refused is refused here, before the first step, and by all ranks together.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shards.errors import UserError
from shards.records import to_json
from trainer.checkpoint import Checkpoint, agree
from trainer.config import Config
from trainer.data import RunData, open_data
from trainer.deepspeed_json import (
    FP32,
    completed,
    micro_batch_of,
    precision_of,
    stage_of,
    with_precision,
)
from trainer.disk import Disk, find_disk
from trainer.model import GLM
from trainer.published import copy_weights, load_published
from trainer.ranks import AgreedError, Ranks
from trainer.schedule import Schedule
from trainer.settings import RESUME_AUTO, RESUME_NONE, Settings
from trainer.step import Stepper, make_model
from trainer.universal import convert, needs_conversion, remove

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, eq=False)
class StartedRun:
    """A run that is ready to take its next step."""

    config: Config
    ranks: Ranks
    data: RunData
    schedule: Schedule
    stepper: Stepper
    disk: Disk | None
    """Where it is saved; None: nowhere."""
    step: int
    """The last step that was taken; 0 at the beginning."""
    bad_losses: int
    """Losses that were no numbers, so far."""
    precision: str
    """bf16, fp16 or fp32."""

    @property
    def steps(self) -> int:
        """The last step of the run."""
        assert self.config.run.steps is not None  # the command line asks for it
        return self.config.run.steps

    def lines(self) -> list[str]:
        """Return what the person should know of the run before it goes."""
        run, shape = self.config.run, self.data.shape
        size, micro = run.batch_size(self.step), self.stepper.micro_batch
        begin = f"goes on from step {self.step:,}" if self.step else "begins anew"
        held_out = "none" if self.data.held_out is None else f"{len(self.data.held_out):,} windows"
        return [
            f"{self.config.settings.model}: {shape.num_parameters():,} parameters, vocabulary "
            f"{shape.vocab_size:,}, {self.precision}, ZeRO stage {self.stepper.stage}",
            f"batch {size:,} = micro-batch {micro} x accumulation "
            f"{size // (micro * self.ranks.world)} x {self.ranks.world} ranks; validation: "
            f"{held_out}",
            f"the run {begin} and ends after step {self.steps:,}"
            + (f"; it is saved to {self.disk.folder}" if self.disk else "; it is saved nowhere"),
        ]

    def state(self, step: int, *, bad_losses: int) -> dict[str, Any]:
        """Return what a checkpoint after a step says of the run."""
        run = self.data.run
        return {
            "loader": self.data.sampler.state_dict(run.position_of(step)),
            "identity": _identity(self.config, self.data, precision=self.precision),
            "schedule": _numbers(self.config.settings, self.schedule),
            "bad_losses": bad_losses,
        }


def start(config: Config, ranks: Ranks) -> StartedRun:
    """Return a run ready to go; all ranks call this.

    Raises:
        UserError: the options, the data, the model, the ranks or the checkpoints do not fit.
    """
    data = ranks.together(lambda: open_data(config))
    ranks.together(lambda: _check_layout(data, ranks))
    precisions = ranks.precisions()
    deepspeed, precision = ranks.together(lambda: _deepspeed(config, precisions))
    micro = ranks.together(lambda: _micro_batch(config, deepspeed, ranks))
    schedule = ranks.together(lambda: config.settings.schedule_of(config.run.steps or 0))
    disk = None if config.settings.save is None else find_disk(config.settings.save, ranks)
    found = _found(config.settings, disk, ranks)
    if found is not None:
        identity = _identity(config, data, precision=precision)
        numbers = _numbers(config.settings, schedule)
        ranks.together(lambda: _check(found, data, identity=identity, numbers=numbers))
    settled = completed(
        deepspeed,
        micro=micro,
        size=config.run.batch_size(0),
        world=ranks.world,
        node_local=disk is not None and disk.node_local,
    )
    return StartedRun(
        config=config,
        ranks=ranks,
        data=data,
        schedule=schedule,
        stepper=_stepper(config, data, settled, found=found, ranks=ranks),
        disk=disk,
        step=0 if found is None else found.step,
        bad_losses=0 if found is None else int(found.state["bad_losses"]),
        precision=precision,
    )


def _deepspeed(config: Config, served: tuple[str, ...]) -> tuple[dict[str, Any], str]:
    content = with_precision(config.deepspeed, config.settings.precision, served=served)
    return content, precision_of(content) or FP32


def _micro_batch(config: Config, deepspeed: Mapping[str, Any], ranks: Ranks) -> int:
    sizes = tuple(batch.size for batch in config.run.batches)
    return micro_batch_of(deepspeed, config.settings.micro_batch, sizes=sizes, world=ranks.world)


def _check_layout(data: RunData, ranks: Ranks) -> None:
    """Make a loader of each size once: it says what it cannot serve."""
    for batch in data.run.batches:
        data.loader(batch.size, ranks)


def _found(settings: Settings, disk: Disk | None, ranks: Ranks) -> Checkpoint | None:
    """Return the checkpoint to go on from, None to begin anew."""
    if settings.resume not in (RESUME_AUTO, RESUME_NONE):
        found = agree(Path(settings.resume), ranks=ranks, disk=None)
        if found is None:
            raise AgreedError(
                f"--resume {settings.resume}: there is no checkpoint there, and none of that name; "
                "give a run's folder, or its step-N."
            )
    elif disk is None:
        return None
    elif settings.resume == RESUME_NONE:
        found = None
    else:
        return agree(disk.folder, ranks=ranks, disk=disk)
    _check_fresh(disk, ranks, but=found)
    return found


def _check_fresh(disk: Disk | None, ranks: Ranks, *, but: Checkpoint | None) -> None:
    """Check that a run that does not go on from --save does not write between old checkpoints."""
    last = 0 if but is None else but.step

    def check() -> None:
        own = but is not None and disk is not None and but.folder.parent.samefile(disk.folder)
        steps = [] if disk is None else sorted(disk.folder.glob("step-*"))
        if [path for path in steps if not own or int(path.name.split("-")[1]) > last]:
            raise UserError(
                f"{disk.folder if disk else ''} holds {steps[-1].name} and this run would not go "
                "on from it: give another --save, or --resume auto."
            )

    ranks.together(check)


def _identity(config: Config, data: RunData, *, precision: str) -> dict[str, Any]:
    """Return what has to be the same all through a run, besides what the sampler looks at."""
    return {
        "model": to_json(data.shape),
        "objective": config.run.objective,
        "blanks": None if data.blanks is None else to_json(data.blanks.options),
        "isolate_documents": data.isolate,
        "tokenizer": data.tokenizer,
        "precision": precision,
    }


def _numbers(settings: Settings, schedule: Schedule) -> dict[str, Any]:
    """Return what may be changed on the way, and is told of."""
    return {
        **to_json(schedule),
        "betas": list(settings.betas),
        "eps": settings.eps,
        "weight_decay": settings.weight_decay,
    }


def _check(
    found: Checkpoint, data: RunData, *, identity: Mapping[str, Any], numbers: Mapping[str, Any]
) -> None:
    """Check that a run is the one that a checkpoint is of.

    Raises:
        UserError: it differs in something that decides what is learnt; the message names it.
    """
    for name, was, now in _differences(found.state["identity"], identity):
        raise UserError(
            f"this run cannot go on from {found.folder}: {name} was {was}, now it is {now}. Set it "
            "as it was, or begin a new run from its weights: "
            f"--init-from {found.folder} --save OTHER."
        )
    position = data.sampler.load_state_dict(found.state["loader"])
    if data.run.position_of(found.step) != position:
        raise UserError(
            f"at step {found.step:,} of {found.folder} the run had taken {position:,} samples; "
            f"with --batch-size as it is now it would be {data.run.position_of(found.step):,}. "
            f"Leave it as it was, and let another begin later: --batch-size SIZE {found.step}:SIZE."
        )
    for name, was, now in _differences(found.state["schedule"], numbers):
        _log.warning("from step %d on %s is %s; it was %s", found.step + 1, name, now, was)


def _differences(was: Any, now: Any, name: str = "") -> list[tuple[str, Any, Any]]:
    """Return the leaves of two JSON values that differ: name, what it was, what it is."""
    if not (isinstance(was, Mapping) and isinstance(now, Mapping)):
        return [] if was == now else [(name, was, now)]
    return [
        found
        for key in sorted({*was, *now})
        for found in _differences(was.get(key), now.get(key), f"{name}.{key}".lstrip("."))
    ]


def _stepper(
    config: Config,
    data: RunData,
    deepspeed: Mapping[str, Any],
    *,
    found: Checkpoint | None,
    ranks: Ranks,
) -> Stepper:
    """Return the engine with the weights that the run goes on from, or begins with."""
    settings, stage = config.settings, stage_of(deepspeed)
    other = found is not None and needs_conversion(found, world=ranks.world, stage=stage)
    if other:
        deepspeed = {**deepspeed, "checkpoint": {"load_universal": True}}
    init = None if found is not None else settings.init_from
    model = make_model(
        data.shape,
        seed=config.run.seed,
        checkpoint_activations=settings.checkpoint_activations,
        deepspeed=deepspeed,
        whole=init is not None,
    )
    if init is not None:
        ranks.together(
            lambda: load_weights(init, model, extend_positions=settings.extend_positions)
        )
    stepper = Stepper(model, settings=settings, deepspeed=deepspeed, ranks=ranks)
    if found is not None:
        tag = convert(found, ranks=ranks) if other else found.tag
        stepper.load(found.folder.parent, tag, step=found.step)
        if other:
            remove(found, ranks=ranks)
    return stepper


def load_weights(path: Path, model: GLM, *, extend_positions: bool = False) -> None:
    """Copy the weights of a published checkpoint, or of one of this trainer, into a model.

    Args:
        path: a file or a folder.
        model: takes the values.
        extend_positions: let the model have more positions than the checkpoint.

    Raises:
        UserError: there is none, or it is of another shape.
    """
    is_split = list(path.glob("whole-*.json")) and list(path.glob("*optim_states.pt"))
    if not is_split:
        load_published(path, model, extend_positions=extend_positions)
        return
    from deepspeed.utils.zero_to_fp32 import (  # noqa: PLC0415 - reads DS_ACCELERATOR when imported
        get_fp32_state_dict_from_zero_checkpoint,
    )

    weights = get_fp32_state_dict_from_zero_checkpoint(str(path.parent), path.name)
    copy_weights(model, [weights], files=[path], extend_positions=extend_positions)
