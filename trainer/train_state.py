"""Makes the state of a run before its first step: its engine and its schedule.

If anything does not fit, all ranks refuse it together here.
"""

import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shards.commands.output import quantity
from shards.records import to_json
from trainer.capacity import check_disk, check_memory, free_memory, offloads_to_nvme
from trainer.checkpoint import Checkpoint
from trainer.compilation import can_compile, use_deterministic_kernels
from trainer.config import RunConfig, fixed_options, reported_options
from trainer.deepspeed import (
    FP32,
    engine_settings,
    micro_batch_of,
    precision_of,
    stage_of,
    with_precision,
)
from trainer.distributed import CollectiveError, Ranks
from trainer.engine import DeepSpeedEngine, check_settings
from trainer.initial_model import make_model
from trainer.log import RunLog
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig
from trainer.resume import differences, refuse_changes
from trainer.schedule import Schedule
from trainer.universal import convert, needs_conversion, remove_converted

LoadWeights = Callable[[GLM], None]
"""Loads the initial weights of a run into a model that `make_model` made; all ranks call this."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, eq=False)
class RunSpec:
    """The specification from which the state of a run is made."""

    shape: ModelConfig
    seed: int
    """The seed of the initial weights, if none are loaded."""
    make: Callable[..., GLM] = GLM
    """Makes a model from its shape."""
    load_weights: LoadWeights | None
    """Loads the initial weights; None if they are drawn at random."""
    batch_sizes: Sequence[int]
    """The global batch sizes, in the order in which they are used."""
    steps: int
    identity: Mapping[str, Any]
    """Values that must stay the same, in addition to model, precision and fixed options."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Values that may change when the run resumes, in addition to the reported options."""
    check: Callable[[Checkpoint], None]
    """Checks that the run can resume from one of its own checkpoints."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainState:
    """A run that is ready to take its next step."""

    config: RunConfig
    ranks: Ranks
    engine: DeepSpeedEngine
    schedule: Schedule
    precision: str
    """bf16, fp16 or fp32."""
    step: int
    """The last step taken; 0 in a new run."""
    steps: int
    """The last step of the run."""
    bad_losses: int
    """The number of bad steps so far, whose loss or gradients were not finite."""
    resumes_in_place: bool
    """Whether the run resumes from a checkpoint in its own folder, which is the one of `step`."""
    resume_fingerprint: Mapping[str, Any]
    """The `identity` and `options` that every checkpoint of the run records."""

    def describe_batch(self, size: int) -> str:
        """Return text about how the ranks share a global batch of this size."""
        micro, world = self.engine.micro_batch, self.ranks.world
        times = size // (micro * world)
        ranks = quantity(world, "rank")
        return f"batch {size:,} = micro-batch {micro} x accumulation {times} x {ranks}"

    def describe_range(self, epochs: str) -> str:
        """Return text about the run's first and last step, its epochs, and its folder."""
        begin = f"resumes after step {self.step:,}" if self.step else "starts from the beginning"
        folder = self.config.save
        saved = f"; it is saved to {folder}" if folder else "; it is not saved"
        return f"the run {begin} and ends after step {self.steps:,}{epochs}{saved}"

    def open_log(self, lines: Sequence[str]) -> RunLog:
        """Open the log of the run and show lines that describe the run; all ranks call this.

        Raises:
            CollectiveError: the first rank cannot write the log.
        """
        is_first = self.ranks.is_first
        log = self.ranks.run_on_all_ranks(
            lambda: RunLog(
                self.config.save if is_first else None,
                step=self.step,
                steps=self.steps,
                show=is_first,
                monitor=self.engine.monitor,
            )
        )
        for line in lines:
            log.show(line)
        return log


def init_train_state(
    config: RunConfig,
    spec: RunSpec,
    *,
    checkpoint: Checkpoint | None,
    ranks: Ranks,
) -> TrainState:
    """Return the state of a run that is ready for its next step; all ranks call this.

    Args:
        config: the configuration of the run.
        spec: the specification of the run.
        checkpoint: the checkpoint to resume from; None for a new run.
        ranks: the ranks of the run.

    Raises:
        UserError: the options, the model, the ranks or the checkpoint do not fit together.
    """
    deepspeed = _complete_settings(config, spec, ranks)
    precision = precision_of(deepspeed) or FP32
    schedule = ranks.run_on_all_ranks(lambda: config.schedule_of(spec.steps))
    fingerprint = {
        "identity": {
            **fixed_options(config),
            "model": to_json(spec.shape),
            "precision": precision,
            **spec.identity,
        },
        "options": {**reported_options(config), "decay_steps": schedule.decay, **spec.options},
    }
    step = 0 if checkpoint is None else checkpoint.step
    if checkpoint is not None:
        _check_resumed(checkpoint, spec, fingerprint, ranks)
        if step > spec.steps:
            raise CollectiveError(
                f"the run in {checkpoint.folder.parent} has taken {step:,} steps, and would end "
                f"after {spec.steps:,}: set a later end, or give another --save."
            )
    _check_capacity(config, spec, deepspeed, ranks=ranks, saves=step < spec.steps)
    return TrainState(
        config=config,
        ranks=ranks,
        engine=_open_engine(config, spec, deepspeed, checkpoint=checkpoint, ranks=ranks),
        schedule=schedule,
        precision=precision,
        step=step,
        steps=spec.steps,
        bad_losses=int(checkpoint.state["bad_losses"]) if checkpoint else 0,
        resumes_in_place=checkpoint is not None and checkpoint.folder.parent == config.save,
        resume_fingerprint=fingerprint,
    )


def _complete_settings(config: RunConfig, spec: RunSpec, ranks: Ranks) -> dict[str, Any]:
    """Return DeepSpeed's settings with batch sizes and a precision that all ranks support.

    Raises:
        CollectiveError: the options do not fit the devices or the ranks.
    """
    supported = ranks.precisions()

    def complete() -> dict[str, Any]:
        given, world = config.deepspeed or {}, ranks.world
        content = with_precision(given, config.precision, supported=supported)
        micro = micro_batch_of(given, config.micro_batch, sizes=spec.batch_sizes, world=world)
        return engine_settings(content, micro=micro, size=spec.batch_sizes[0], world=world)

    content = ranks.run_on_all_ranks(complete)
    is_slow = config.precision is None and ranks.device.type == "cpu"
    if is_slow and ranks.is_first and (precision := precision_of(content) or FP32) != FP32:
        _log.warning(
            "the DeepSpeed JSON computes in %s, which a CPU does many times more slowly than in "
            "fp32: give --precision fp32",
            precision,
        )
    ranks.run_on_all_ranks(lambda: check_settings(content))
    return content


def _check_resumed(
    checkpoint: Checkpoint, spec: RunSpec, fingerprint: Mapping[str, Any], ranks: Ranks
) -> None:
    """Check that a checkpoint belongs to a run, and report options that have changed since.

    Raises:
        CollectiveError: the checkpoint belongs to a different run; the message names the
            difference.
    """
    before = checkpoint.state

    def check() -> None:
        refuse_changes(differences(before["identity"], fingerprint["identity"]), checkpoint)
        spec.check(checkpoint)

    ranks.run_on_all_ranks(check)
    changed = differences(before["options"], fingerprint["options"])
    for name, former, now in changed if ranks.is_first else ():
        _log.warning("from step %d on %s is %s; it was %s", checkpoint.step + 1, name, now, former)


def _check_capacity(
    config: RunConfig, spec: RunSpec, deepspeed: Mapping[str, Any], *, ranks: Ranks, saves: bool
) -> None:
    """Check that memory and disk have room for a model and a checkpoint; all ranks call this."""
    machine, parameters = socket.gethostname(), spec.shape.num_parameters()
    here = ranks.gather(machine).count(machine)

    def check() -> None:
        if config.save is not None and saves:
            check_disk(config.save, parameters)
        if ranks.device.type == "cpu" and not offloads_to_nvme(deepspeed):
            check_memory(
                parameters,
                stage=stage_of(deepspeed),
                wide=precision_of(deepspeed) in (None, FP32),
                here=here,
                world=ranks.world,
                free=free_memory(),
            )

    ranks.run_on_all_ranks(check)


def _open_engine(
    config: RunConfig,
    spec: RunSpec,
    deepspeed: Mapping[str, Any],
    *,
    checkpoint: Checkpoint | None,
    ranks: Ranks,
) -> DeepSpeedEngine:
    """Return the engine, with the weights of the checkpoint or the initial weights."""
    stage = stage_of(deepspeed)
    if config.deterministic:
        use_deterministic_kernels()
    model = make_model(
        spec.shape,
        seed=spec.seed,
        checkpoint_activations=config.checkpoint_activations,
        deepspeed=deepspeed,
        ranks=ranks,
        make=spec.make,
    )
    converts = checkpoint is not None and needs_conversion(
        checkpoint, world=ranks.world, stage=stage
    )
    if converts:
        deepspeed = {**deepspeed, "checkpoint": {"load_universal": True}}
    if checkpoint is None and spec.load_weights is not None:
        spec.load_weights(model)
    compiles = not config.no_compile and can_compile(stage=stage, ranks=ranks)
    engine = DeepSpeedEngine(
        model, config=config, deepspeed=deepspeed, compiles=compiles, ranks=ranks
    )
    if checkpoint is not None:
        tag = convert(checkpoint, ranks=ranks) if converts else checkpoint.tag
        engine.load(checkpoint.folder.parent, tag, step=checkpoint.step)
        if converts:
            remove_converted(checkpoint, ranks=ranks)
    return engine
