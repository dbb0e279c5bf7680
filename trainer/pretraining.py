"""A run that learns the windows of a dataset."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import torch

from shards.program import called
from shards.switches import numbers_of
from trainer.checkpoints.disk import run_folder_locked
from trainer.data import source_names
from trainer.follow import Follower
from trainer.log import VALIDATION, RunLog
from trainer.loss_tally import LossTally
from trainer.model.flops import peak_flops
from trainer.ranks import DTYPES, Ranks
from trainer.run import Hook, Running, Work
from trainer.settings import EPOCH, Config
from trainer.start import LoadWeights, StartedRun, log_of, start
from trainer.step import Outcome
from trainer.stop import Stop
from trainer.validation import evaluate

MakeHooks = Callable[[StartedRun, RunLog, Stop], Sequence[Hook]]
"""Makes the hooks of a run that is ready; all ranks call it."""


@dataclass(eq=False)
class Windows(Work):
    """The `run.Work` of a dataset: its windows, in the order of the run."""

    started: StartedRun
    _: KW_ONLY
    hooks: Sequence[Hook]
    follower: Follower
    log: RunLog
    stop: Stop

    def __post_init__(self) -> None:
        self._settings, self._ranks = self.started.config.settings, self.started.ranks
        self._data = self.started.data
        self._batches = self._data.batches(self.started.step, self._ranks)
        self._tally = LossTally.empty(source_names(self._data.sampler.streams))

    def take(self, step: int, *, lr: float) -> Outcome:
        """Take a step."""
        asked = time.perf_counter()
        batch = next(self._batches)
        waited = time.perf_counter() - asked
        outcome, tally = self.started.stepper(
            batch, lr=lr, seed=self._data.run.seed, step=step, sources=self._tally.sources
        )
        if outcome.is_finite:
            self._tally += tally
        length = outcome.num_tokens // outcome.num_samples
        share = tally.num_targets / max(1, outcome.num_tokens)
        flops = self._data.shape.flops_per_token(length, target_share=share)
        return replace(outcome, flops=outcome.num_tokens * flops, waited=waited)

    def figures(self) -> Mapping[str, float]:
        """Return loss and accuracy since the last call."""
        figures = self._tally.figures()
        self._tally = LossTally.empty(self._tally.sources)
        return figures

    def position(self, step: int) -> int:
        """Return the number of samples up to a step."""
        return self._data.run.position_of(step)

    def prepare(self, step: int, *, is_saved: bool) -> None:
        """Read the data that are decided for the step after one; a checkpoint decides."""
        if is_saved:
            self.follower.look(self._data, self.position(step))
        run = self.follower.run_before(self.position(step + 1))
        if run.mixes == self._data.run.mixes:
            self._data = replace(self._data, run=run)
            return
        self._data = self.follower.open(run)
        self._batches = self._data.batches(step, self._ranks)
        self._tally = self._tally.with_sources(source_names(self._data.sampler.streams))
        shown = ", ".join(f"{folder}@{number}" for folder, number in numbers_of(run).items())
        self.log.say(f"from step {step + 1:,} on: {shown}")

    def saves(self, step: int) -> bool:
        """Return whether a checkpoint is due."""
        return self._is_due(self._settings.save_every, step)

    def judge(self, step: int, *, is_taken: bool, bad_streak: int) -> bool:  # noqa: ARG002
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
        stepper = self.started.stepper
        tally = evaluate(
            stepper.losses,
            self._data,
            at_once=stepper.micro_batch,
            ranks=self._ranks,
            stop=self.stop.exit_code,
        )
        if tally is not None:
            samples = self.position(step)
            self.log.write(VALIDATION, step, tally.figures(), samples=samples)

    def state(self, step: int, *, bad_losses: int) -> dict[str, Any]:
        """Return what a checkpoint records of the run and its data."""
        return self.started.state(step, self._data, bad_losses=bad_losses)

    def hint(self, step: int) -> str:
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

    def open_run() -> StartedRun:
        return start(config, ranks, load_weights=load_weights, trains=True)

    with run_folder_locked(config.settings.save, ranks, start=open_run) as started:
        return _train(started, make_hooks)


def _train(started: StartedRun, make_hooks: MakeHooks) -> int:
    ranks = started.ranks
    with Stop(ranks) as stop, closing(log_of(started, started.lines())) as log:
        hooks = make_hooks(started, log, stop)
        follower = Follower(started.config, folder=started.folder, ranks=ranks, say=log.say)
        follower.save()
        windows = Windows(started, hooks=hooks, follower=follower, log=log, stop=stop)
        ready = replace(started, peak_flops=_peak_flops(started))
        return Running(ready, windows, log=log, stop=stop).run()


def _peak_flops(started: StartedRun) -> float | None:
    """Return the peak FLOP/s of all devices together, None if it is not known."""
    if started.ranks.device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(started.ranks.device)
    peak = peak_flops(name, DTYPES[started.precision])
    return None if peak is None else peak * started.ranks.world
