"""Pretraining: trains a model on the windows of a dataset.

`train` opens the data, the checkpoint to resume from and the engine (`open_task`), and gives them
to the `Trainer`. `PretrainTask` then takes each step, validates, and switches to newer data with
--follow.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from shards.commands.progress import track
from shards.commands.table import called
from shards.errors import UserError
from shards.manifest import read_manifest
from shards.records import to_json
from shards.sampling.mixture import WeightedData, open_mixture
from shards.sampling.partitions import ScatterPartitions
from shards.sampling.plan import SamplingPlan
from shards.sampling.switches import before_later_switches, manifest_numbers
from shards.storage.remote import any_path
from trainer.checkpoint import Checkpoint
from trainer.config import EPOCH, TrainConfig
from trainer.data import RunData, source_names
from trainer.distributed import Ranks, Stop
from trainer.engine import micro_batches
from trainer.follow import DatasetWatcher, open_on_all_ranks, resolve_plan
from trainer.loader import Tensors
from trainer.log import VALIDATION, RunLog
from trainer.metrics import LossTally, StepResult
from trainer.model.loss import LossSums
from trainer.resume import find_resume_point
from trainer.saver import run_folder_locked
from trainer.train_state import LoadWeights, RunSpec, TrainState, init_train_state
from trainer.trainer import Hook, Trainer, TrainingTask


@dataclass(kw_only=True, eq=False)
class PretrainTask(TrainingTask):
    """Training on the windows of a dataset, in the order of the run."""

    config: TrainConfig
    state: TrainState
    data: RunData
    """The data from the next step up to the next switch."""
    epoch: int
    """The number of samples in an epoch, which is the number of windows of the data that the run
    begins with; 0 if no option depends on epochs."""
    watcher: DatasetWatcher
    hooks: Sequence[Hook] = ()
    _batches: Iterator[Tensors] = field(init=False)
    _tally: LossTally = field(init=False)

    def __post_init__(self) -> None:
        self._batches = self.data.batches(self.state.step, self.state.ranks)
        self._tally = LossTally.empty(source_names(self.data.sampler.streams))

    def train_step(self, step: int, *, lr: float) -> StepResult:
        """Train on the next batch."""
        begin = time.perf_counter()
        batch = next(self._batches)
        waited = time.perf_counter() - begin
        result, tally = self.state.engine.train_step(
            batch, lr=lr, seed=self.data.plan.seed, step=step, sources=self._tally.sources
        )
        if result.is_finite:
            self._tally += tally
        length = result.num_tokens // result.num_samples
        share = tally.num_targets / max(1, result.num_tokens)
        flops = self.data.shape.flops_per_token(length, target_share=share)
        return replace(result, flops=result.num_tokens * flops, waited=waited)

    def metrics(self) -> Mapping[str, float]:
        """Return loss and accuracy of the steps since the last call."""
        figures = self._tally.figures()
        self._tally = LossTally.empty(self._tally.sources)
        return figures

    def position(self, step: int) -> int:
        """Return the number of samples up to a step."""
        return self.data.plan.position_of(step)

    def before_step(self, step: int, log: RunLog, *, at_checkpoint: bool) -> None:
        """Open the data of the step after `step`; newer data are taken only at a checkpoint."""
        if at_checkpoint:
            self.watcher.poll(self.data, self.position(step), show=log.show)
        plan = self.watcher.plan_before(self.position(step + 1))
        if plan.mixes == self.data.plan.mixes:
            self.data = replace(self.data, plan=plan)
            return
        self.data = self.watcher.open(plan)
        self._batches = self.data.batches(step, self.state.ranks)
        self._tally = self._tally.with_sources(source_names(self.data.sampler.streams))
        log.show(f"from step {step + 1:,} on: {_describe_numbers(plan)}")

    def should_save(self, step: int) -> bool:
        """Return whether a checkpoint is due after a step."""
        return self._is_due(self.config.save_every, step)

    def evaluate(self, step: int, log: RunLog, stop: Stop, *, bad_streak: int | None) -> bool:
        """Validate and run the hooks that are due; return whether anything was due."""
        if bad_streak is None:
            return False
        validates = self._is_due(self.config.eval_every, step)
        hooks = [hook for hook in self.hooks if self._is_due(hook.every, step)]
        if validates:
            engine, ranks = self.state.engine, self.state.ranks
            tally = evaluate(
                engine.forward_eval,
                self.data,
                at_once=engine.micro_batch,
                ranks=ranks,
                stop=stop.exit_code,
            )
            if tally is not None:
                log.write(VALIDATION, step, tally.figures(), samples=self.position(step))
        for hook in hooks:
            hook.run(step, log, stop)
        return validates or bool(hooks)

    def _is_due(self, every: int | str, step: int) -> bool:
        """Return whether something is due after a step; everything is due after the last step.

        Args:
            every: the number of steps from one time to the next, or 0 for never, or EPOCH.
            step: the last step taken.
        """
        if every == EPOCH:
            begin, end = self.position(step - 1), self.position(step)
            return step == self.state.steps or begin // self.epoch < end // self.epoch
        every = int(every)
        return every > 0 and (step == self.state.steps or step % every == 0)

    def checkpoint_state(self, step: int) -> dict[str, Any]:
        """Return the task's part of a checkpoint: the run and the position in its data."""
        plan = self.data.plan
        position = plan.position_of(step)
        if plan.followed is not None:
            # A run that resumes may still switch here.
            plan = replace(plan, followed=max(0, min(plan.followed, position - 1)))
        return {
            "loader": self.data.sampler.state_dict(position),
            "run": to_json(plan.with_data(WeightedData.absolute)),
        }

    def debug_hint(self, step: int) -> str:
        """Return the command that shows the samples of a step."""
        folder = self.config.save
        run = "RUN" if folder is None else folder / "run.json"
        return f" To see what a step trains on: {called('shards trace')} {run} --step {step - 1}."

    def summary(self) -> list[str]:
        """Return lines that describe the run for its user."""
        shape, state, held_out = self.data.shape, self.state, self.data.held_out
        windows = "none" if held_out is None else f"{len(held_out):,} windows"
        if held_out is not None and len(held_out) < held_out.num_windows:
            windows = f"{len(held_out):,} of {held_out.num_windows:,} windows"
        size = self.data.plan.batch_size(state.step)
        return [
            f"{self.config.model_name}: {shape.num_parameters():,} parameters, vocabulary "
            f"{shape.vocab_size:,}, {state.precision}, ZeRO stage {state.engine.stage}",
            f"{state.describe_batch(size)}; validation: {windows}",
            state.describe_range(self._epochs()),
            *self._data_lines(),
        ]

    def _epochs(self) -> str:
        """Return text about the size of an epoch; empty if no option depends on it."""
        if self.config.epochs is not None:
            epochs = self.config.epochs
            ends = "one epoch" if epochs == 1 else f"{epochs:g} epochs"
            return f", {ends} of {self.epoch:,} windows"
        return f"; an epoch is {self.epoch:,} windows" if self.epoch else ""

    def _data_lines(self) -> list[str]:
        """Return a line about newer manifests, if the run follows them or could follow them."""
        numbers = manifest_numbers(self.data.plan)
        shown = _describe_numbers(self.data.plan)
        if self.config.follow:
            return [f"the data are {shown}; newer manifests are taken after each checkpoint"]
        newest = {directory: read_manifest(any_path(directory)).number for directory in numbers}
        if newest == numbers:
            return []
        return [f"the data are {shown}; there are newer manifests, which --follow takes"]


def _describe_numbers(plan: SamplingPlan) -> str:
    """Return the datasets that a run reads, with their manifest numbers, as text."""
    return ", ".join(
        f"{directory}@{number}" for directory, number in manifest_numbers(plan).items()
    )


def evaluate(
    forward_eval: Callable[[Tensors], LossSums],
    data: RunData,
    *,
    at_once: int,
    ranks: Ranks,
    stop: Callable[[], int] = lambda: 0,
) -> LossTally | None:
    """Return the tally of the validation windows; None if there are none, or if the run stops.

    The windows and their blanks are the same each time, and each window is counted once.

    Args:
        forward_eval: a function that computes the losses of a batch of windows without gradients.
        data: the data with the windows.
        at_once: the number of windows that a rank computes at once.
        ranks: the ranks, which all call this; each computes its part.
        stop: a function that is called after each batch, with the same result on all ranks; if the
            result is not 0, this returns None.
    """
    if data.held_out is None:
        return None
    tally = LossTally.empty(source_names(data.held_out.streams))
    size = at_once * ranks.world
    batches = data.validation(size, ranks)
    if ranks.is_first:
        total = math.ceil(len(data.held_out) / size) * size
        batches = track("validation", batches, total=total, weight=lambda _: size, unit="windows")
    for batch in batches:
        for part in micro_batches(batch, at_once):
            tally = tally.plus(part, forward_eval(part))
        if stop():
            return None
    return tally.summed_over(ranks)


def open_task(
    config: TrainConfig, ranks: Ranks, *, load_weights: LoadWeights | None
) -> PretrainTask:
    """Return the task of a run that is ready for its next step; all ranks call this.

    Args:
        config: the configuration of the run.
        ranks: the ranks of the run.
        load_weights: a function that loads the weights of --init-from; None if the flag is not
            given.

    Raises:
        UserError: the options, the data, the model, the ranks or the checkpoints do not fit
            together.
    """
    parts = {"loader": dict, "loader.position": int, "loader.shards": dict, "run": dict}
    checkpoint = find_resume_point(config, ranks, parts=parts)
    plan = resolve_plan(config, ranks, checkpoint=checkpoint)
    epoch = ranks.run_on_all_ranks(lambda: _epoch(plan)) if config.counts_epochs else 0
    if plan.steps is None:
        # The last step is filled with windows of the next epoch.
        windows = max(1, math.ceil((config.epochs or 0) * epoch))
        plan = replace(plan, steps=plan.step_of(windows - 1) + 1)
    now = before_later_switches(plan, plan.position_of(checkpoint.step if checkpoint else 0))
    data = open_on_all_ranks(config, now, ranks)
    spec = RunSpec(
        shape=data.shape,
        seed=plan.seed,
        load_weights=load_weights,
        batch_sizes=[batch.size for batch in plan.batches],
        steps=plan.steps or 0,
        identity={
            "blanks": None if data.blanks is None else to_json(data.blanks.options),
            "tokenizer": data.tokenizer,
        },
        check=lambda checkpoint: _check_same_data(checkpoint, data),
    )
    state = init_train_state(config, spec, checkpoint=checkpoint, ranks=ranks)
    watcher = DatasetWatcher(config, plan, ranks=ranks)
    return PretrainTask(config=config, state=state, data=data, epoch=epoch, watcher=watcher)


def _check_same_data(checkpoint: Checkpoint, data: RunData) -> None:
    """Check that a run has the data and batch sizes that it had up to a checkpoint.

    Raises:
        UserError: the run's data, or the run's batch sizes so far, are different.
    """
    loader, plan, step = checkpoint.state["loader"], data.plan, checkpoint.step
    if missing := sorted(set(loader["shards"]) - set(data.sampler.names)):
        folders = ", ".join(str(dataset.directory) for dataset in data.datasets)
        raise UserError(
            f"this run cannot resume from {checkpoint.folder}: it was trained on "
            f"{', '.join(missing)}, and {folders} has no such text: these are other data, or they "
            "were overwritten or compacted since. Give the data as they were, or start a new run "
            f"from its weights: --init-from {checkpoint.folder} --save OTHER."
        )
    try:
        position = data.sampler.load_state_dict(loader)
    except UserError as error:
        raise UserError(f"{checkpoint.folder}: {error}") from error
    if plan.position_of(step) != position:
        raise UserError(
            f"at step {step:,} of {checkpoint.folder} the run had taken {position:,} samples; "
            f"with the current --batch-size it would have taken {plan.position_of(step):,}. "
            "Give the earlier batch size first, and start the new one at this step: --batch-size "
            f"SIZE {step}:SIZE."
        )


def _epoch(plan: SamplingPlan) -> int:
    """Return the number of windows of the data that a run begins with."""
    first = replace(before_later_switches(plan, 0), steps=None, max_epochs={})
    mixture = open_mixture(first.mixes, stride=first.window.stride)
    drawn = {name for name, weight in mixture.stages[0].weights.items() if weight}
    streams = [stream for stream in mixture.streams if stream.name in drawn]
    if not streams:
        return 0  # opening the data reports the problem
    cells = ScatterPartitions(streams, num_scatters=1, stride=first.window.stride)
    return sum(cells.windows_of_streams)


def train(
    config: TrainConfig,
    ranks: Ranks,
    *,
    load_weights: LoadWeights | None,
    make_hooks: Callable[[PretrainTask, Stop], Sequence[Hook]],
) -> int:
    """Train and return the exit code: 0, or the code of the signal that stopped the run.

    Args:
        config: the configuration of the run.
        ranks: the ranks of the run.
        load_weights: a function that loads the weights of --init-from; None if the flag is not
            given.
        make_hooks: a function that makes the hooks, which run after some steps; all ranks call it.
    """

    def start() -> PretrainTask:
        return open_task(config, ranks, load_weights=load_weights)

    with (
        run_folder_locked(config.save, ranks, start=start) as task,
        Stop(ranks) as stop,
        closing(task.state.open_log(task.summary())) as log,
    ):
        task.hooks = make_hooks(task, stop)
        task.watcher.save()
        return Trainer(task.state, task, log=log, stop=stop).run()
