"""From a command line to an engine that is ready at some step: the first, or where a run stopped.

Everything that can be refused is refused here, before the first step, and by all ranks together.
"""

import logging
import math
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from shards.errors import DamageError, UserError
from shards.flags import flag_of
from shards.manifest import read_manifest, told_apart
from shards.mixture import WeightedData, open_mixture
from shards.order.cells import Cells
from shards.order.onepass import OnePass
from shards.records import from_json, to_json
from shards.run import Run
from shards.storage.remote import any_path
from shards.switches import before_later_switches, numbers_of
from trainer.checkpoints.checkpoint import (
    LATEST,
    VERSION,
    Checkpoint,
    NoCheckpointError,
    check_files,
    find_checkpoint,
    find_later_steps,
    was_saved,
)
from trainer.checkpoints.room import check_disk, check_memory, free_memory, keeps_elsewhere
from trainer.checkpoints.universal import convert, needs_conversion, remove
from trainer.data import RunData, open_data
from trainer.deepspeed_json import (
    FP32,
    engine_settings,
    micro_batch_of,
    precision_of,
    stage_of,
    with_precision,
)
from trainer.follow import run_of
from trainer.log import RunLog
from trainer.model.compilation import agreed_problem
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig
from trainer.ranks import AgreedError, Ranks
from trainer.run import Ready
from trainer.settings import RESUME_AUTO, RESUME_NONE, Config, Learning
from trainer.step import Stepper, after_removal, check_settings, make_model

_FOREVER = 2**62
"""Beyond any position."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, eq=False)
class StartedRun(Ready):
    """A run that is ready to learn windows."""

    config: Config
    """Its run has all switches that are decided."""
    data: RunData
    """From the first step on, up to the next switch."""
    epoch: int
    """Samples in an epoch: as many as the data that the run begins with have windows; 0 where that
    decides nothing."""

    def lines(self) -> list[str]:
        """Return a summary of the run for its user."""
        shape = self.data.shape
        held_out = "none" if self.data.held_out is None else _shown(self.data.held_out)
        return [
            f"{self.config.settings.model}: {shape.num_parameters():,} parameters, vocabulary "
            f"{shape.vocab_size:,}, {self.precision}, ZeRO stage {self.stepper.stage}",
            f"{batch_line(self, self.config.run.batch_size(self.step))}; validation: {held_out}",
            span_line(self, self._epochs()),
            *self._data_lines(),
        ]

    def _epochs(self) -> str:
        """Return what is said of epochs where they decide something."""
        settings = self.config.settings
        if settings.epochs is not None:
            ends = "one epoch" if settings.epochs == 1 else f"{settings.epochs:g} epochs"
            return f", {ends} of {self.epoch:,} windows"
        if settings.counts_epochs:
            return f"; an epoch is {self.epoch:,} windows"
        return ""

    def _data_lines(self) -> list[str]:
        """Return what a run says that follows its data, or could."""
        numbers = numbers_of(self.data.run)
        shown = ", ".join(f"{directory}@{number}" for directory, number in numbers.items())
        if self.config.settings.follow:
            return [f"the data are {shown}; newer manifests are taken after each checkpoint"]
        newest = {directory: read_manifest(any_path(directory)).number for directory in numbers}
        if newest == numbers:
            return []
        return [f"the data are {shown}; there are newer manifests, which --follow takes"]

    def state(self, step: int, data: RunData, *, bad_losses: int) -> dict[str, Any]:
        """Return what a checkpoint after a step records about the run and its data then.

        Args:
            step: that was taken last.
            data: that it was taken with.
            bad_losses: how many were not finite so far.
        """
        position = data.run.position_of(step)
        return {
            "loader": data.sampler.state_dict(position),
            "run": to_json(_found_anywhere(_undecided_at(data.run, position))),
            **self.fixed,
            "bad_losses": bad_losses,
        }


def _shown(held_out: OnePass) -> str:
    """Return how many validation windows are read, and of how many."""
    read, there = len(held_out), held_out.num_windows
    return f"{read:,} windows" if read == there else f"{read:,} of {there:,} windows"


def batch_line(ready: Ready, size: int) -> str:
    """Return how the ranks of a run share a batch of a size."""
    micro, world = ready.stepper.micro_batch, ready.ranks.world
    times = size // (micro * world)
    return f"batch {size:,} = micro-batch {micro} x accumulation {times} x {world} ranks"


def span_line(ready: Ready, epochs: str) -> str:
    """Return where a run begins and ends, with what is said of its epochs, and is saved."""
    begin = f"resumes after step {ready.step:,}" if ready.step else "starts from the beginning"
    saved = f"; it is saved to {ready.folder}" if ready.folder else "; it is not saved"
    return f"the run {begin} and ends after step {ready.steps:,}{epochs}{saved}"


def log_of(ready: Ready, lines: Sequence[str]) -> RunLog:
    """Return the log of a run, open, with lines that were said first."""
    ranks = ready.ranks
    log = RunLog(
        ready.folder if ranks.is_first else None,
        step=ready.step,
        steps=ready.steps,
        show=ranks.is_first,
        monitor=ready.stepper.monitor,
    )
    for line in lines:
        log.say(line)
    return log


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
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


def make_ready(
    settings: Learning,
    subject: Subject,
    *,
    checkpoint: Checkpoint | None,
    ranks: Ranks,
    trains: bool = True,
) -> Ready:
    """Return a run that is ready; all ranks call this.

    Args:
        settings: of the run.
        subject: what it learns.
        checkpoint: to resume from; None: the run begins.
        ranks: of the run.
        trains: whether it is to take steps, so that it may not have passed its end.

    Raises:
        UserError: the options, the model, the ranks or the checkpoint do not fit.
    """
    deepspeed, precision = _with_agreed_precision(settings, ranks)
    schedule = ranks.together(lambda: settings.schedule_of(subject.steps))
    fixed = {
        "identity": {**subject.identity, "precision": precision},
        "schedule": {
            **to_json(schedule),
            "betas": list(settings.betas),
            "eps": settings.eps,
            "weight_decay": settings.weight_decay,
            **subject.options,
        },
        **subject.records,
    }
    if checkpoint is not None:
        ranks.together(lambda: subject.check(checkpoint, fixed["identity"]))
        if trains and checkpoint.step > subject.steps:
            raise AgreedError(
                f"the run in {checkpoint.folder.parent} has taken {checkpoint.step:,} steps, and "
                f"would end after {subject.steps:,}: give it more, or another --save."
            )
        changed = differences(checkpoint.state["schedule"], fixed["schedule"])
        for name, before, now in changed if ranks.is_first else ():
            first = checkpoint.step + 1
            _log.warning("from step %d on %s is %s; it was %s", first, name, now, before)
    deepspeed = engine_settings(
        deepspeed,
        micro=subject.micro,
        size=subject.size,
        world=ranks.world,
    )
    step = 0 if checkpoint is None else checkpoint.step
    saves = settings.save if trains and step < subject.steps else None
    shape = from_json(ModelConfig, subject.identity["model"], where="model")
    _check_room(shape.num_parameters(), deepspeed, precision, folder=saves, ranks=ranks)
    return Ready(
        stepper=make_stepper(subject, settings, deepspeed, checkpoint=checkpoint, ranks=ranks),
        schedule=schedule,
        ranks=ranks,
        folder=settings.save,
        step=step,
        steps=subject.steps,
        bad_losses=subject.bad_losses,
        is_saved=checkpoint is not None and checkpoint.folder.parent == settings.save,
        settings=settings,
        precision=precision,
        fixed=fixed,
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

    ranks.together(check)


class LoadWeights(Protocol):
    """Loads weights into a model of `make_model`; all ranks call it."""

    def __call__(self, path: Path, model: GLM, *, extend_positions: bool, ranks: Ranks) -> None:
        """Load the weights at a path; the model may have more positions if that is said."""


def start(
    config: Config, ranks: Ranks, *, load_weights: LoadWeights, trains: bool = False
) -> StartedRun:
    """Return a run that is ready to learn windows; all ranks call this.

    Args:
        config: the run.
        ranks: of the run.
        load_weights: loads what --init-from names.
        trains: whether it is to take steps, so that it may not have passed its end.

    Raises:
        UserError: the options, the data, the model, the ranks or the checkpoints do not fit.
    """
    settings = config.settings
    checkpoint = find_start(settings, ranks, check=_check_state)
    if checkpoint is not None and settings.init_from is not None and ranks.is_first:
        source, folder = settings.init_from, checkpoint.folder
        _log.info("--init-from %s is not read: the run resumes from %s", source, folder)
    run = run_of(config.run, settings, checkpoint=checkpoint, ranks=ranks)
    epoch = ranks.together(lambda: _epoch(run)) if settings.counts_epochs else 0
    run = _ended(run, settings.epochs, epoch=epoch)
    config = replace(config, run=run)
    micro = agreed_micro_batch(settings, [batch.size for batch in run.batches], ranks)
    now = before_later_switches(run, run.position_of(checkpoint.step if checkpoint else 0))
    data = ranks.together(lambda: open_data(replace(config, run=now)))
    ranks.together(lambda: data.check_layout(ranks))
    init = settings.init_from

    def load(model: GLM) -> None:
        if init is not None:
            load_weights(init, model, extend_positions=settings.extend_positions, ranks=ranks)

    subject = Subject(
        make=partial(make_model, data.shape, seed=run.seed),
        load_weights=None if init is None else load,
        micro=micro,
        size=run.batch_size(0),
        steps=run.steps or 0,
        bad_losses=int(checkpoint.state["bad_losses"]) if checkpoint else 0,
        identity={
            "model": to_json(data.shape),
            "objective": run.objective,
            "blanks": None if data.blanks is None else to_json(data.blanks.options),
            "isolate_documents": data.isolate,
            "tokenizer": data.tokenizer,
        },
        check=partial(_check_same_run, data=data),
    )
    ready = make_ready(settings, subject, checkpoint=checkpoint, ranks=ranks, trains=trains)
    return StartedRun(**vars(ready), config=config, data=data, epoch=epoch)


def _epoch(run: Run) -> int:
    """Return how many windows the data have that a run begins with."""
    first = replace(before_later_switches(run, 0), steps=None, max_epochs={})
    mixture = open_mixture(first.mixes, stride=first.window.stride)
    drawn = {name for name, weight in mixture.stages[0].weights.items() if weight}
    streams = [stream for stream in mixture.streams if stream.name in drawn]
    if not streams:
        return 0  # opening the data says what is wrong
    cells = Cells(streams, num_scatters=1, stride=first.window.stride)
    return sum(cells.windows_of_streams)


def _ended(run: Run, epochs: float | None, *, epoch: int) -> Run:
    """Return a run with its number of steps; the last one is filled with windows of the next epoch.

    Args:
        run: with or without it.
        epochs: when it ends, where it has none.
        epoch: samples in one.
    """
    if run.steps is not None or epochs is None:
        return run
    return replace(run, steps=run.step_of(max(1, math.ceil(epochs * epoch)) - 1) + 1)


def _found_anywhere(run: Run) -> Run:
    """Return a run whose data are found from every folder that a command may be started in."""
    return run.with_data(WeightedData.absolute)


def _undecided_at(run: Run, position: int) -> Run:
    """Return a run that may still switch at a position, which is after those of earlier steps."""
    if run.followed is None:
        return run
    return replace(run, followed=max(0, min(run.followed, position - 1)))


def _with_agreed_precision(settings: Learning, ranks: Ranks) -> tuple[dict[str, Any], str]:
    """Return DeepSpeed's settings with a precision that all ranks have, and its name.

    Raises:
        AgreedError: what is asked for does not fit the settings, or the devices.
    """
    given, asked, supported = settings.deepspeed or {}, settings.precision, ranks.precisions()
    content = ranks.together(lambda: with_precision(given, asked, supported=supported))
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
        AgreedError: the micro-batches of all ranks do not make up a batch.
    """
    return ranks.together(
        lambda: micro_batch_of(
            settings.deepspeed or {}, settings.micro_batch, sizes=sizes, world=ranks.world
        )
    )


def find_start(
    settings: Learning, ranks: Ranks, *, check: Callable[[Checkpoint], None]
) -> Checkpoint | None:
    """Return the checkpoint to resume from, its files checked; None to start from the beginning.

    Args:
        settings: of the run.
        ranks: all of them call this.
        check: checks the state that the checkpoint records.
    """
    checkpoint = _find_checkpoint(settings, ranks)
    if checkpoint is not None:
        check_files(checkpoint, ranks=ranks)
        ranks.together(lambda: _check_version(checkpoint))
        ranks.together(lambda: check(checkpoint))
    return checkpoint


def _check_version(checkpoint: Checkpoint) -> None:
    if checkpoint.version != VERSION:
        raise UserError(
            f"{checkpoint.folder} was saved by an earlier version of corpusmill, which drew other "
            "masks of dropout, so this version cannot resume it. Start a new run from its weights: "
            f"--init-from {checkpoint.folder} --save OTHER."
        )


def _find_checkpoint(settings: Learning, ranks: Ranks) -> Checkpoint | None:
    """Return the checkpoint to resume from, None to start from the beginning."""
    save = settings.save
    if settings.resume == RESUME_AUTO:
        return None if save is None else _find_newest(save, ranks)
    is_new = settings.resume == RESUME_NONE
    checkpoint = None if is_new else _find_named(Path(settings.resume), ranks)
    if save is not None:
        ranks.on_first(lambda: _check_no_later_steps(save, resumed=checkpoint))
    return checkpoint


def _find_newest(folder: Path, ranks: Ranks) -> Checkpoint | None:
    """Return the newest checkpoint of a run; None if none was ever whole.

    Raises:
        AgreedError: one was, and none can be used any more.
    """
    problem = f"{folder} holds no checkpoint"
    is_saved = ranks.on_first(lambda: was_saved(folder))
    try:
        checkpoint = find_checkpoint(folder, ranks=ranks)
    except NoCheckpointError as error:
        checkpoint, problem = None, str(error)
        if ranks.is_first and not is_saved:
            _log.warning("%s; the run starts from the beginning", error)
    if checkpoint is None and is_saved:
        raise AgreedError(
            f"{problem}. The file {folder / LATEST} shows that the run was saved before, so it "
            "does not start from the beginning there. Restore a checkpoint, or choose another "
            "--save."
        )
    return checkpoint


def _find_named(folder: Path, ranks: Ranks) -> Checkpoint:
    """Return the checkpoint that --resume names."""
    try:
        checkpoint = find_checkpoint(folder, ranks=ranks)
    except NoCheckpointError as error:
        raise AgreedError(
            f"--resume {folder}: {error}. Give a folder with a complete one."
        ) from error
    if checkpoint is None:
        raise AgreedError(
            f"--resume {folder}: there is no checkpoint of that name or in that folder; give a "
            "run's folder, or one of its step-N."
        )
    return checkpoint


def _check_no_later_steps(folder: Path, *, resumed: Checkpoint | None) -> None:
    """Check that a run will not write its checkpoints among those of another run in --save."""
    is_own = resumed is not None and resumed.folder.parent.samefile(folder)
    last = resumed.step if resumed is not None and is_own else -1
    if steps := find_later_steps(folder, after=last):
        raise UserError(
            f"{folder} holds step-{steps[0]} and this run would not resume from it: give another "
            "--save, or --resume auto."
        )


def _check_state(checkpoint: Checkpoint) -> None:
    """Check that a checkpoint has the state of a run, as `StartedRun.state` makes it.

    Raises:
        UserError: it is of another command.
        DamageError: something is missing, or of another type.
    """
    state, loader = checkpoint.state, checkpoint.state.get("loader")
    if "tuning" in state:
        raise UserError(
            f"{checkpoint.folder} is a checkpoint of trainer.finetune, and this run cannot resume "
            f"from it. Start from its weights: --init-from {checkpoint.folder} --save OTHER."
        )
    types = {"loader": dict, "identity": dict, "schedule": dict, "bad_losses": int}
    wrong = [name for name, kind in types.items() if not isinstance(state.get(name), kind)]
    if isinstance(loader, dict):
        position = loader.get("position")
        if not isinstance(position, int) or not 0 <= position < _FOREVER:
            wrong.append("loader.position")
        if not isinstance(loader.get("shards"), dict):
            wrong.append("loader.shards")
    if wrong:
        raise DamageError(
            f"{checkpoint.folder} does not hold the state of a run: {wrong[0]} in its "
            "whole-*.json is missing or of a wrong type. Bring the file back as it was, or remove "
            f"the folder, and the run {after_removal(checkpoint.folder.parent, checkpoint.step)}."
        )


def _check_same_run(checkpoint: Checkpoint, identity: Mapping[str, Any], *, data: RunData) -> None:
    """Check that a checkpoint belongs to this run.

    Raises:
        UserError: the run differs in something that decides what is learnt; the message names it.
    """
    loader = checkpoint.state["loader"]
    own = data.sampler.state_dict(loader["position"])
    changed = differences(checkpoint.state["identity"], identity)
    changed += differences(_sampling_flags(loader), _sampling_flags(own))
    otherwise = (
        "start a new run from its weights, which fit the same shape, or with --extend-positions "
        f"more positions: --init-from {checkpoint.folder} --save OTHER."
    )
    refuse_changes(changed, checkpoint, otherwise=otherwise)
    _check_same_text(checkpoint, data)
    try:
        position = data.sampler.load_state_dict(loader)
    except UserError as error:
        raise UserError(f"{checkpoint.folder}: {error}") from error
    step = checkpoint.step
    if data.run.position_of(step) != position:
        raise UserError(
            f"at step {step:,} of {checkpoint.folder} the run had taken {position:,} samples; "
            f"with the current --batch-size it would have taken {data.run.position_of(step):,}. "
            "Give the earlier batch size first, and start the new one at this step: --batch-size "
            f"SIZE {step}:SIZE."
        )


def _sampling_flags(loader: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that decide which samples are drawn, from the state of a sampler."""
    window = loader.get("window")
    if not isinstance(window, Mapping):  # of a damaged state, which the sampler refuses
        return {}
    length, classes = (window.get(name, 0) for name in ("length", "num_cls"))
    flags = {name: loader.get(name) for name in ("seed", "num_scatters")}
    return {**flags, "length": length + classes, "slack": window.get("slack")}


def refuse_changes(
    changed: Sequence[tuple[str, Any, Any]], checkpoint: Checkpoint, *, otherwise: str
) -> None:
    """Refuse to resume a run that differs from its checkpoint.

    Args:
        changed: `differences` from what it records.
        checkpoint: of the run.
        otherwise: how to start another run.

    Raises:
        UserError: there are some; the message names the first.
    """
    for name, before, now in changed[:1]:
        raise UserError(
            f"{checkpoint.folder} was saved by a run with other options: {_flag_shown(name)} was "
            f"{before}, and this command has {now}. Set it back, or {otherwise}"
        )


def _flag_shown(name: str) -> str:
    """Return how a message names an option: by its flag, and the key behind it."""
    option, _, key = name.partition(".")
    shown = {"num_scatters": "--scatters", "tokenizer": "the tokenizer"}
    return f"{shown.get(option, flag_of(option))} {key}".rstrip()


def _check_same_text(checkpoint: Checkpoint, data: RunData) -> None:
    """Check that the data have all streams that were drawn from before a checkpoint."""
    drawn = checkpoint.state["loader"]["shards"]
    if missing := sorted(set(drawn) - set(data.sampler.names)):
        folders = ", ".join(str(dataset.directory) for dataset in data.datasets)
        raise UserError(
            f"this run cannot resume from {checkpoint.folder}: it was trained on "
            f"{', '.join(missing)}, and {folders} has no such text: these are other data, or they "
            "were overwritten or compacted since. Give the data as they were, or start a new run "
            f"from its weights: --init-from {checkpoint.folder} --save OTHER."
        )


def differences(before: Any, now: Any, name: str = "") -> list[tuple[str, Any, Any]]:
    """Return the leaves in which two JSON values differ: name, earlier value, present value."""
    if not (isinstance(before, Mapping) and isinstance(now, Mapping)):
        return [] if before == now else [(name, before, now)]
    if before.keys() == now.keys() == {"name", "sha256"} and before != now:  # of a tokenizer
        # A checkpoint that somebody changed may hold anything.
        both = ((str(each["name"]), str(each["sha256"])) for each in (before, now))
        return [(name, *told_apart(*both))]
    return [
        difference
        for key in sorted({*before, *now})
        for difference in differences(before.get(key), now.get(key), f"{name}.{key}".lstrip("."))
    ]


def make_stepper(
    subject: Subject,
    settings: Learning,
    deepspeed: Mapping[str, Any],
    *,
    checkpoint: Checkpoint | None,
    ranks: Ranks,
) -> Stepper:
    """Return the engine of a model, with the weights that the run resumes or starts with.

    Args:
        subject: what the run learns.
        settings: of the run.
        deepspeed: complete settings.
        checkpoint: to resume from; None: the run begins.
        ranks: all of them call this.

    Raises:
        UserError: DeepSpeed does not take the settings, or the weights do not fit.
    """
    ranks.together(lambda: check_settings(deepspeed))
    model = subject.make(
        checkpoint_activations=settings.checkpoint_activations, deepspeed=deepspeed, ranks=ranks
    )
    converts = checkpoint is not None and needs_conversion(
        checkpoint, world=ranks.world, stage=stage_of(deepspeed)
    )
    if converts:
        deepspeed = {**deepspeed, "checkpoint": {"load_universal": True}}
    if checkpoint is None and subject.load_weights is not None:
        subject.load_weights(model)
    stepper = Stepper(
        model,
        settings=settings,
        deepspeed=deepspeed,
        compiles=_compiles(settings, deepspeed, ranks),
        ranks=ranks,
    )
    if checkpoint is not None:
        tag = convert(checkpoint, ranks=ranks) if converts else checkpoint.tag
        stepper.load(checkpoint.folder.parent, tag, step=checkpoint.step)
        if converts:
            remove(checkpoint, ranks=ranks)
    return stepper


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
