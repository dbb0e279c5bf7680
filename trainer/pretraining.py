"""A run that learns the windows of a dataset."""

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from shards.program import called
from shards.switches import numbers_of
from trainer.benchmarks import benchmarks_of, main_figures
from trainer.checkpoints.disk import run_folder_locked
from trainer.data import source_names
from trainer.evaluating import evaluate
from trainer.follow import Follower
from trainer.log import TASKS, VALIDATION, RunLog
from trainer.loss_tally import LossTally
from trainer.model.flops import peak_flops
from trainer.ranks import DTYPES, Ranks
from trainer.run import Running, Work
from trainer.samples import open_samples
from trainer.settings import EPOCH, Config
from trainer.start import StartedRun, log_of, start
from trainer.step import Outcome
from trainer.stop import Stop

if TYPE_CHECKING:
    from trainer.harness import Benchmarks


@dataclass(eq=False)
class Windows(Work):
    """The `run.Work` of a dataset: its windows, in the order of the run."""

    started: StartedRun
    _: KW_ONLY
    benchmarks: "Benchmarks | None"
    follower: Follower
    log: RunLog
    stop: Stop

    def __post_init__(self) -> None:
        self._samples = open_samples(self.started, stop=self.stop)
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
        """Log validation, tasks and samples if they are due; return whether they were."""
        validates = is_taken and self._is_due(self._settings.eval_every, step)
        writes = is_taken and self._is_due(self._settings.sample_every, step)
        if validates:
            self._validate(step)
            self._examine(step)
        if writes and self._samples is not None:
            self._samples.write(step, self.log)
        return validates or writes

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

    def _examine(self, step: int) -> None:
        if self.benchmarks is None:
            return
        answer = self.started.stepper.answer
        figures = self.benchmarks.score(answer, stop=self.stop.exit_code)
        if figures:
            line = f"step {step:,}/{self.started.steps:,}  {TASKS}  {main_figures(figures)}"
            self.log.write(TASKS, step, figures, samples=self.position(step), line=line)

    def state(self, step: int, *, bad_losses: int) -> dict[str, Any]:
        """Return what a checkpoint records of the run and its data."""
        return self.started.state(step, self._data, bad_losses=bad_losses)

    def hint(self, step: int) -> str:
        """Return how to see what a step trained on."""
        folder = self._settings.save
        run = "RUN" if folder is None else folder / "run.json"
        return f" To see what a step trains on: {called('shards trace')} {run} --step {step - 1}."


def train(config: Config, ranks: Ranks) -> int:
    """Train and return the exit code: 0, or that of the signal that stopped it."""
    save = config.settings.save
    with run_folder_locked(save, ranks, start=lambda: start(config, ranks, trains=True)) as started:
        return _train(started)


def _train(started: StartedRun) -> int:
    ranks = started.ranks
    benchmarks = ranks.together(lambda: benchmarks_of(started))
    with Stop(ranks) as stop, closing(log_of(started, started.lines())) as log:
        follower = Follower(started.config, folder=started.folder, ranks=ranks, say=log.say)
        follower.save()
        windows = Windows(started, benchmarks=benchmarks, follower=follower, log=log, stop=stop)
        ready = replace(started, peak_flops=_peak_flops(started))
        return Running(ready, windows, log=log, stop=stop).run()


def _peak_flops(started: StartedRun) -> float | None:
    """Return the peak FLOP/s of all devices together, None if it is not known."""
    if started.ranks.device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(started.ranks.device)
    peak = peak_flops(name, DTYPES[started.precision])
    return None if peak is None else peak * started.ranks.world
