"""A run that learns the items of a task.

RUN/step-N               the newest checkpoint
RUN/best/step-N          that of the best epoch, by the task's first metric
RUN/predictions.jsonl    its answers to test.jsonl, as they are handed in
RUN/log.jsonl            losses, and the metrics of each epoch
"""

import math
from collections.abc import Mapping
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from shards.shown import json_text
from shards.storage.files import atomic_write
from trainer.checkpoints.disk import gone_if_refused
from trainer.finetune.command import Finetune
from trainer.finetune.progress import Best, Since, better, keep
from trainer.finetune.start import StartedTuning, start
from trainer.log import RunLog
from trainer.ranks import AgreedError, Ranks
from trainer.run import Running, Work
from trainer.settings import EPOCH
from trainer.start import log_of
from trainer.step import Outcome
from trainer.stop import Stop
from trainer.tasks.task import TRAIN

EVALUATION = "evaluation"
PREDICTIONS = "predictions.jsonl"


@dataclass(eq=False)
class Items(Work):
    """The `run.Work` of a task: its items, epoch by epoch, of which the best is kept."""

    started: StartedTuning
    _: KW_ONLY
    log: RunLog

    def __post_init__(self) -> None:
        self._tuning, self._order = self.started.tuning, self.started.order
        self._evaluation = self.started.evaluation
        self.progress = self.started.progress
        """How far the run has come, but for its losses that are not finite."""
        self._kept: Best | None = None
        """The best whose checkpoint is known to be kept."""

    def take(self, step: int, *, lr: float) -> Outcome:
        """Take a step."""
        batch = [self._evaluation.questions[TRAIN][number] for number in self._order.items(step)]
        outcome, accuracy = self.started.tuner.learn(
            batch, lr=lr, seed=self._tuning.seed, step=step
        )
        if outcome.is_finite:
            since = self.progress.since.plus(loss=outcome.loss, accuracy=accuracy)
            self.progress = replace(self.progress, since=since)
        return outcome

    def figures(self) -> Mapping[str, float]:
        """Return loss and accuracy since the last call."""
        means = self.progress.since.means()
        self.progress = replace(self.progress, since=Since())
        return means

    def position(self, step: int) -> int:
        """Return how many items were taken up to a step, short batches as whole ones."""
        return step * self._tuning.batch_size

    def judge(self, step: int, *, is_taken: bool, bad_streak: int) -> bool:  # noqa: ARG002
        """Evaluate an epoch that has ended, in this start or before it, and was not evaluated."""
        epoch = self._order.ended_epoch(step)
        if epoch is None or epoch <= self.progress.evaluated:
            return False
        if not bad_streak:
            self._evaluate(epoch, step)
            return True
        self.progress = replace(self.progress, evaluated=epoch)
        self.log.say(
            f"epoch {epoch:,}/{self._tuning.epochs:,} is not evaluated: the loss was not finite "
            f"{bad_streak} times in a row at its end"
        )
        return True

    def _evaluate(self, epoch: int, step: int) -> None:
        """Evaluate an epoch and note if it is the best, unless the run is asked to stop."""
        metrics = self._evaluation.metrics()
        if metrics is None:
            return
        is_judged = bool(metrics)
        # Without anything to tell epochs apart, the last one is the best.
        metrics = metrics or {"steps": step}
        here = Best(epoch=epoch, step=step, metrics=metrics)
        best = better(self.progress.best, here)
        if best is here:
            # JSON, of which checkpoints are made, has no other figures.
            finite = {name: figure for name, figure in metrics.items() if math.isfinite(figure)}
            best = here = replace(here, metrics=finite)
            if not self._predict():
                return
        shown = "  ".join(f"{name} {figure:.4g}" for name, figure in metrics.items())
        note = f"  ({_rank_note(here, best)})" if is_judged else ""
        self.log.write(
            EVALUATION,
            step,
            {"epoch": epoch, **metrics},
            samples=self.position(step),
            line=f"epoch {epoch:,}/{self._tuning.epochs:,}  {shown}{note}",
        )
        bests = () if best is None else (best,)
        self.progress = replace(self.progress, bests=bests, evaluated=epoch)

    def _predict(self) -> bool:
        """Write the answers to the test items, if there are any; return whether not stopped."""
        lines = self._evaluation.predictions()
        if lines and self.started.ranks.is_first:
            with atomic_write(self._tuning.save / PREDICTIONS) as handle:
                for line in lines:
                    handle.write(json_text(line).encode() + b"\n")
        return lines is not None

    def saves(self, step: int) -> bool:
        """Return whether an epoch has ended, or as many steps were taken as --save-every says."""
        every = self._tuning.save_every
        is_due = every != EPOCH and step % int(every) == 0
        return is_due or self._order.ended_epoch(step) is not None

    def state(self, step: int, *, bad_losses: int) -> dict[str, Any]:  # noqa: ARG002
        """Return what a checkpoint records of the run."""
        return self.started.state(replace(self.progress, bad_losses=bad_losses))

    def saved(self) -> None:
        """Keep the checkpoint of the best epoch, once it is whole."""
        best = self.progress.best
        if best is None or best is self._kept:
            return
        if keep(self.started.disk, best, self.started.ranks):
            self._kept = best


def _rank_note(here: Best, best: Best | None) -> str:
    if best is None:
        return "none counts so far: its figure is not finite"
    return "the best so far" if best is here else f"the best was epoch {best.epoch}"


def finetune(tuning: Finetune, ranks: Ranks) -> int:
    """Train and return the exit code: 0, or that of the signal that stopped it."""
    stop = Stop(ranks)
    with gone_if_refused(tuning.save):
        started = start(tuning, ranks, stop=stop)
    with stop, closing(log_of(started, started.lines())) as log:
        items = Items(started, log=log)
        code = Running(started, items, log=log, stop=stop).run()
        best = items.progress.best
        if best is not None and not code:
            log.say(f"the best is {best.folder(tuning.save)}")
    if best is None and not code:
        raise AgreedError(
            "no epoch counts as the best: at the end of each the loss or the deciding figure was "
            "not finite. The weights have most likely diverged. Start again in another --save than "
            f"{tuning.save}, with a lower --lr or a longer --warmup, in bf16 or fp32 rather than "
            "fp16."
        )
    return code
