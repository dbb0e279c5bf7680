"""What every run has before its first step: its engine, its schedule, where it is saved.

Everything that can be refused is refused here, by all ranks together.
"""

import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shards.records import from_json, to_json
from trainer.checkpoint import (
    Checkpoint,
)
from trainer.compilation import agreed_problem
from trainer.config import Learning
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
from trainer.log import RunLog
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig
from trainer.resume import differences
from trainer.room import check_disk, check_memory, free_memory, keeps_elsewhere
from trainer.schedule import Schedule
from trainer.universal import convert, needs_conversion, remove

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainState:
    """What every run has that is ready to take its next step."""

    engine: DeepSpeedEngine
    schedule: Schedule
    ranks: Ranks
    folder: Path | None
    """Where it is saved; None: nowhere."""
    step: int
    """The last step taken; 0 at the beginning."""
    steps: int
    """The last step of the run."""
    bad_losses: int
    """NaN and infinite losses so far."""
    is_saved: bool = False
    """Whether the checkpoint of `step` lies where the run is saved."""
    settings: Learning
    """How it learns."""
    peak_flops: float | None = None
    """FLOP/s of all devices together, where it is known."""
    precision: str
    """bf16, fp16 or fp32."""
    resume_fingerprint: Mapping[str, Any]
    """What all its checkpoints record, as `identity` and `schedule`."""


def batch_line(state: TrainState, size: int) -> str:
    """Return how the ranks of a run share a batch of a size."""
    micro, world = state.engine.micro_batch, state.ranks.world
    times = size // (micro * world)
    return f"batch {size:,} = micro-batch {micro} x accumulation {times} x {world} ranks"


def span_line(state: TrainState, epochs: str) -> str:
    """Return where a run begins and ends, with what is said of its epochs, and is saved."""
    begin = f"resumes after step {state.step:,}" if state.step else "starts from the beginning"
    saved = f"; it is saved to {state.folder}" if state.folder else "; it is not saved"
    return f"the run {begin} and ends after step {state.steps:,}{epochs}{saved}"


def open_log(state: TrainState, lines: Sequence[str]) -> RunLog:
    """Return the log of a run, open, with lines that were said first."""
    ranks = state.ranks
    log = RunLog(
        state.folder if ranks.is_first else None,
        step=state.step,
        steps=state.steps,
        show=ranks.is_first,
        monitor=state.engine.monitor,
    )
    for line in lines:
        log.say(line)
    return log


@dataclass(frozen=True, kw_only=True, eq=False)
class RunSpec:
    """What a run learns, as far as its start has to know."""

    make: Callable[..., GLM]
    """`make_model` with shape and seed."""
    load_weights: Callable[[GLM], None] | None
    """Loads the weights that it begins with; None: they are drawn."""
    micro: int
    """Samples that a rank computes at once."""
    size: int
    """Of its first batch."""
    steps: int
    bad_losses: int
    identity: Mapping[str, Any]
    """What must stay the same throughout the run, besides the precision."""
    check: Callable[[Checkpoint, Mapping[str, Any]], None]
    """Checks that a checkpoint belongs to the run, whose whole identity it takes."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What may change when it resumes, besides learning rate and optimizer."""
    records: Mapping[str, Any] = field(default_factory=dict)
    """What else all its checkpoints record."""


def init_train_state(
    settings: Learning,
    spec: RunSpec,
    *,
    checkpoint: Checkpoint | None,
    ranks: Ranks,
    trains: bool = True,
) -> TrainState:
    """Return a run that is ready; all ranks call this.

    Args:
        settings: of the run.
        spec: what it learns.
        checkpoint: to resume from; None: the run begins.
        ranks: of the run.
        trains: whether it is to take steps, so that it may not have passed its end.

    Raises:
        UserError: the options, the model, the ranks or the checkpoint do not fit.
    """
    deepspeed, precision = _with_agreed_precision(settings, ranks)
    schedule = ranks.run_on_all_ranks(lambda: settings.schedule_of(spec.steps))
    resume_fingerprint = {
        "identity": {**spec.identity, "precision": precision},
        "schedule": {
            **to_json(schedule),
            "betas": list(settings.betas),
            "eps": settings.eps,
            "weight_decay": settings.weight_decay,
            **spec.options,
        },
        **spec.records,
    }
    if checkpoint is not None:
        ranks.run_on_all_ranks(lambda: spec.check(checkpoint, resume_fingerprint["identity"]))
        if trains and checkpoint.step > spec.steps:
            raise CollectiveError(
                f"the run in {checkpoint.folder.parent} has taken {checkpoint.step:,} steps, and "
                f"would end after {spec.steps:,}: give it more, or another --save."
            )
        changed = differences(checkpoint.state["schedule"], resume_fingerprint["schedule"])
        for name, before, now in changed if ranks.is_first else ():
            first = checkpoint.step + 1
            _log.warning("from step %d on %s is %s; it was %s", first, name, now, before)
    deepspeed = engine_settings(
        deepspeed,
        micro=spec.micro,
        size=spec.size,
        world=ranks.world,
    )
    step = 0 if checkpoint is None else checkpoint.step
    saves = settings.save if trains and step < spec.steps else None
    shape = from_json(ModelConfig, spec.identity["model"], where="model")
    _check_room(shape.num_parameters(), deepspeed, precision, folder=saves, ranks=ranks)
    return TrainState(
        engine=make_engine(spec, settings, deepspeed, checkpoint=checkpoint, ranks=ranks),
        schedule=schedule,
        ranks=ranks,
        folder=settings.save,
        step=step,
        steps=spec.steps,
        bad_losses=spec.bad_losses,
        is_saved=checkpoint is not None and checkpoint.folder.parent == settings.save,
        settings=settings,
        precision=precision,
        resume_fingerprint=resume_fingerprint,
    )


def _check_room(
    parameters: int,
    deepspeed: Mapping[str, Any],
    precision: str,
    *,
    folder: Path | None,
    ranks: Ranks,
) -> None:
    """Check that a model fits into memory, and its checkpoints on a disk; all ranks call this."""
    stage, machine = stage_of(deepspeed), socket.gethostname()
    here = ranks.gather(machine).count(machine)
    is_cpu = ranks.device.type == "cpu" and not keeps_elsewhere(deepspeed)

    def check() -> None:
        if folder is not None:
            check_disk(folder, parameters)
        if is_cpu:
            wide, free = precision == FP32, free_memory()
            check_memory(
                parameters, stage=stage, wide=wide, here=here, world=ranks.world, free=free
            )

    ranks.run_on_all_ranks(check)


def _with_agreed_precision(settings: Learning, ranks: Ranks) -> tuple[dict[str, Any], str]:
    """Return DeepSpeed's settings with a precision that all ranks have, and its name.

    Raises:
        CollectiveError: what is asked for does not fit the settings, or the devices.
    """
    given, asked, supported = settings.deepspeed or {}, settings.precision, ranks.precisions()
    content = ranks.run_on_all_ranks(lambda: with_precision(given, asked, supported=supported))
    precision = precision_of(content) or FP32
    if asked is None and ranks.is_first and ranks.device.type == "cpu" and precision != FP32:
        _log.warning(
            "the DeepSpeed JSON computes in %s, which a CPU does many times more slowly than in "
            "fp32: give --precision fp32",
            precision,
        )
    return content, precision


def agreed_micro_batch(settings: Learning, sizes: Sequence[int], ranks: Ranks) -> int:
    """Return how many samples a rank computes at once; all ranks call this.

    Args:
        settings: of the run.
        sizes: of its batches.
        ranks: of the run.

    Raises:
        CollectiveError: the micro-batches of all ranks do not make up a batch.
    """
    return ranks.run_on_all_ranks(
        lambda: micro_batch_of(
            settings.deepspeed or {}, settings.micro_batch, sizes=sizes, world=ranks.world
        )
    )


def make_engine(
    spec: RunSpec,
    settings: Learning,
    deepspeed: Mapping[str, Any],
    *,
    checkpoint: Checkpoint | None,
    ranks: Ranks,
) -> DeepSpeedEngine:
    """Return the engine of a model, with the weights that the run resumes or starts with.

    Args:
        spec: what the run learns.
        settings: of the run.
        deepspeed: complete settings.
        checkpoint: to resume from; None: the run begins.
        ranks: all of them call this.

    Raises:
        UserError: DeepSpeed does not take the settings, or the weights do not fit.
    """
    ranks.run_on_all_ranks(lambda: check_settings(deepspeed))
    model = spec.make(
        checkpoint_activations=settings.checkpoint_activations, deepspeed=deepspeed, ranks=ranks
    )
    converts = checkpoint is not None and needs_conversion(
        checkpoint, world=ranks.world, stage=stage_of(deepspeed)
    )
    if converts:
        deepspeed = {**deepspeed, "checkpoint": {"load_universal": True}}
    if checkpoint is None and spec.load_weights is not None:
        spec.load_weights(model)
    engine = DeepSpeedEngine(
        model,
        settings=settings,
        deepspeed=deepspeed,
        compiles=_compiles(settings, deepspeed, ranks),
        ranks=ranks,
    )
    if checkpoint is not None:
        tag = convert(checkpoint, ranks=ranks) if converts else checkpoint.tag
        engine.load(checkpoint.folder.parent, tag, step=checkpoint.step)
        if converts:
            remove(checkpoint, ranks=ranks)
    return engine


def _compiles(settings: Learning, deepspeed: Mapping[str, Any], ranks: Ranks) -> bool:
    """Return whether layers and loss are compiled; all ranks call this, and the first says why not.

    --no-compile says it without a line.
    """
    if settings.no_compile:
        return False
    problem = agreed_problem(stage=stage_of(deepspeed), ranks=ranks)
    if problem and ranks.is_first:
        _log.warning("the model is not compiled, which is slower: %s", problem)
    return problem is None
