"""A run that learns the windows of a dataset."""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch

from shards.manifest import read_manifest
from shards.mixture import WeightedData, open_mixture
from shards.order.cells import Cells
from shards.order.onepass import OnePass
from shards.program import called
from shards.records import to_json
from shards.run import Run
from shards.storage.remote import any_path
from shards.switches import before_later_switches, numbers_of
from trainer.config import EPOCH, Config
from trainer.data import RunData, open_data, source_names
from trainer.distributed import DTYPES, Ranks, Stop
from trainer.engine import StepResult, make_model
from trainer.follow import DatasetWatcher, run_of
from trainer.log import VALIDATION, RunLog
from trainer.metrics import LossTally, peak_flops
from trainer.model.model import GLM
from trainer.resume import check_same_run, check_state, find_resume_point
from trainer.saver import run_folder_locked
from trainer.train_state import (
    RunSpec,
    TrainState,
    agreed_micro_batch,
    batch_line,
    init_train_state,
    open_log,
    span_line,
)
from trainer.trainer import Hook, Trainer, TrainingTask
from trainer.validation import evaluate

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, eq=False)
class PretrainState(TrainState):
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
            f"{shape.vocab_size:,}, {self.precision}, ZeRO stage {self.engine.stage}",
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
            **self.resume_fingerprint,
            "bad_losses": bad_losses,
        }


def _shown(held_out: OnePass) -> str:
    """Return how many validation windows are read, and of how many."""
    read, there = len(held_out), held_out.num_windows
    return f"{read:,} windows" if read == there else f"{read:,} of {there:,} windows"


class LoadWeights(Protocol):
    """Loads weights into a model of `make_model`; all ranks call it."""

    def __call__(self, path: Path, model: GLM, *, extend_positions: bool, ranks: Ranks) -> None:
        """Load the weights at a path; the model may have more positions if that is said."""


def start(
    config: Config, ranks: Ranks, *, load_weights: LoadWeights, trains: bool = False
) -> PretrainState:
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
    checkpoint = find_resume_point(settings, ranks, check=check_state)
    if checkpoint is not None and settings.init_from is not None and ranks.is_first:
        source, folder = settings.init_from, checkpoint.folder
        _log.info("--init-from %s is not read: the run resumes from %s", source, folder)
    run = run_of(config.run, settings, checkpoint=checkpoint, ranks=ranks)
    epoch = ranks.run_on_all_ranks(lambda: _epoch(run)) if settings.counts_epochs else 0
    run = _ended(run, settings.epochs, epoch=epoch)
    config = replace(config, run=run)
    micro = agreed_micro_batch(settings, [batch.size for batch in run.batches], ranks)
    now = before_later_switches(run, run.position_of(checkpoint.step if checkpoint else 0))
    data = ranks.run_on_all_ranks(lambda: open_data(replace(config, run=now)))
    ranks.run_on_all_ranks(lambda: data.check_layout(ranks))
    init = settings.init_from

    def load(model: GLM) -> None:
        if init is not None:
            load_weights(init, model, extend_positions=settings.extend_positions, ranks=ranks)

    spec = RunSpec(
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
        check=partial(check_same_run, data=data),
    )
    state = init_train_state(settings, spec, checkpoint=checkpoint, ranks=ranks, trains=trains)
    return PretrainState(**vars(state), config=config, data=data, epoch=epoch)


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


MakeHooks = Callable[[PretrainState, RunLog, Stop], Sequence[Hook]]
"""Makes the hooks of a run that is ready; all ranks call it."""


@dataclass(eq=False)
class PretrainTask(TrainingTask):
    """The `run.TrainingTask` of a dataset: its windows, in the order of the run."""

    started: PretrainState
    _: KW_ONLY
    hooks: Sequence[Hook]
    watcher: DatasetWatcher
    log: RunLog
    stop: Stop

    def __post_init__(self) -> None:
        self._settings, self._ranks = self.started.config.settings, self.started.ranks
        self._data = self.started.data
        self._batches = self._data.batches(self.started.step, self._ranks)
        self._tally = LossTally.empty(source_names(self._data.sampler.streams))

    def train_step(self, step: int, *, lr: float) -> StepResult:
        """Take a step."""
        asked = time.perf_counter()
        batch = next(self._batches)
        waited = time.perf_counter() - asked
        outcome, tally = self.started.engine(
            batch, lr=lr, seed=self._data.run.seed, step=step, sources=self._tally.sources
        )
        if outcome.is_finite:
            self._tally += tally
        length = outcome.num_tokens // outcome.num_samples
        share = tally.num_targets / max(1, outcome.num_tokens)
        flops = self._data.shape.flops_per_token(length, target_share=share)
        return replace(outcome, flops=outcome.num_tokens * flops, waited=waited)

    def metrics(self) -> Mapping[str, float]:
        """Return loss and accuracy since the last call."""
        figures = self._tally.figures()
        self._tally = LossTally.empty(self._tally.sources)
        return figures

    def position(self, step: int) -> int:
        """Return the number of samples up to a step."""
        return self._data.run.position_of(step)

    def before_step(self, step: int, *, is_saved: bool) -> None:
        """Read the data that are decided for the step after one; a checkpoint decides."""
        if is_saved:
            self.watcher.poll(self._data, self.position(step))
        run = self.watcher.run_before(self.position(step + 1))
        if run.mixes == self._data.run.mixes:
            self._data = replace(self._data, run=run)
            return
        self._data = self.watcher.open(run)
        self._batches = self._data.batches(step, self._ranks)
        self._tally = self._tally.with_sources(source_names(self._data.sampler.streams))
        shown = ", ".join(f"{folder}@{number}" for folder, number in numbers_of(run).items())
        self.log.say(f"from step {step + 1:,} on: {shown}")

    def should_save(self, step: int) -> bool:
        """Return whether a checkpoint is due."""
        return self._is_due(self._settings.save_every, step)

    def evaluate(self, step: int, *, is_taken: bool, bad_streak: int) -> bool:  # noqa: ARG002
        """Validate, and do what the hooks do, if that is due; return whether anything was."""
        if not is_taken:
            return False
        validates = self._is_due(self._settings.eval_every, step)
        hooks = [hook for hook in self.hooks if self._is_due(hook.every, step)]
        if validates:
            self._validate(step)
        for hook in hooks:
            hook.act(step)
        return validates or bool(hooks)

    def _is_due(self, every: int | str, step: int) -> bool:
        """Return whether what is done so often, and after the last step, is done after a step.

        Args:
            every: steps, 0 for never; EPOCH.
            step: the last one.
        """
        if every == EPOCH:
            size = self.started.epoch
            begin, end = self.position(step - 1), self.position(step)
            return step == self.started.steps or begin // size < end // size
        every = int(every)
        return every > 0 and (step == self.started.steps or step % every == 0)

    def _validate(self, step: int) -> None:
        engine = self.started.engine
        tally = evaluate(
            engine.losses,
            self._data,
            at_once=engine.micro_batch,
            ranks=self._ranks,
            stop=self.stop.exit_code,
        )
        if tally is not None:
            samples = self.position(step)
            self.log.write(VALIDATION, step, tally.figures(), samples=samples)

    def state(self, step: int, *, bad_losses: int) -> dict[str, Any]:
        """Return what a checkpoint records of the run and its data."""
        return self.started.state(step, self._data, bad_losses=bad_losses)

    def debug_hint(self, step: int) -> str:
        """Return how to see what a step trained on."""
        folder = self._settings.save
        run = "RUN" if folder is None else folder / "run.json"
        return f" To see what a step trains on: {called('shards trace')} {run} --step {step - 1}."


def train(config: Config, ranks: Ranks, *, load_weights: LoadWeights, make_hooks: MakeHooks) -> int:
    """Train and return the exit code: 0, or that of the signal that stopped it.

    Args:
        config: the run.
        ranks: of the run.
        load_weights: loads what --init-from names.
        make_hooks: makes what is done every so many steps besides validation.
    """

    def open_run() -> PretrainState:
        return start(config, ranks, load_weights=load_weights, trains=True)

    with run_folder_locked(config.settings.save, ranks, start=open_run) as started:
        return _train(started, make_hooks)


def _train(started: PretrainState, make_hooks: MakeHooks) -> int:
    ranks = started.ranks
    with Stop(ranks) as stop, closing(open_log(started, started.lines())) as log:
        hooks = make_hooks(started, log, stop)
        watcher = DatasetWatcher(started.config, folder=started.folder, ranks=ranks, say=log.say)
        watcher.save()
        task = PretrainTask(started, hooks=hooks, watcher=watcher, log=log, stop=stop)
        state = replace(started, peak_flops=_peak_flops(started))
        return Trainer(state, task, log=log, stop=stop).run()


def _peak_flops(started: PretrainState) -> float | None:
    """Return the peak FLOP/s of all devices together, None if it is not known."""
    if started.ranks.device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(started.ranks.device)
    peak = peak_flops(name, DTYPES[started.precision])
    return None if peak is None else peak * started.ranks.world
