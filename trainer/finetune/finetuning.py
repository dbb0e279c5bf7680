"""The steps of a run of fine-tuning, from where it starts to its end.

RUN/step-N               the newest checkpoint
RUN/best/step-N          that of the best epoch, by the task's first metric
RUN/predictions.jsonl    its answers to test.jsonl, as they are handed in
RUN/log.jsonl            losses, and the metrics of each epoch
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from shards.shown import json_text
from shards.storage.files import atomic_write
from trainer.bad_losses import BadLosses
from trainer.checkpoints.checkpoint import BAD_STREAK
from trainer.checkpoints.disk import gone_if_refused
from trainer.checkpoints.saver import Saver, completed_on_error
from trainer.log import TRAIN, Meter, RunLog
from trainer.ranks import AgreedError, Ranks
from trainer.stop import Stop
from trainer.tasks.task import TRAIN as ITEMS
from trainer.tuning import best as best_of_run
from trainer.tuning.best import Best
from trainer.tuning.progress import Progress, Since
from trainer.tuning.settings import Config, Tuning
from trainer.tuning.start import Started, start
from trainer.tuning.step import Outcome

EVALUATION = "evaluation"
PREDICTIONS = "predictions.jsonl"


class Finetuning:
    """The steps of a run, from where it starts to its end."""

    def __init__(self, started: Started, *, log: RunLog, stop: Stop) -> None:
        """Take over a run that is ready."""
        self._started = started
        self._tuning = started.config.tuning
        self._items = started.evaluation.questions[ITEMS]
        self._evaluation = started.evaluation
        self._ranks = started.ranks
        self._tuner = started.tuner
        self._order = started.order
        self._log = log
        self._stop = stop
        self._step = started.step
        self._evaluated = started.progress.evaluated
        self.best = started.progress.best
        """Of the epochs so far."""
        self._kept: Best | None = None
        """The best whose checkpoint is known to be kept."""
        self._bad_losses = BadLosses(started.progress.bad_losses, most=self._tuning.max_bad_losses)
        self._is_saved = True
        """Whether nothing has changed since the last checkpoint."""
        self._since = started.progress.since
        self._meter = Meter()
        self._saver = Saver(
            started.tuner.stepper.engine, started.disk, keep=self._tuning.keep, ranks=self._ranks
        )

    def run(self) -> int:
        """Train to the end, or until asked to stop; return the exit code."""
        with completed_on_error(self._finish_saving):
            return self._take_steps()

    def _take_steps(self) -> int:
        self._keep_best()
        code = self._between_steps() if self._step else 0
        while self._step < self._order.steps and not code:
            self._take_step()
            code = self._asked_to_stop() or self._between_steps()
        if not self._is_saved:
            self._save()
        self._finish_saving()
        if self.best is None and not code:
            raise AgreedError(
                "no epoch counts as the best: at the end of each the loss or the deciding figure "
                f"was not finite. {_diverged(self._tuning)}"
            )
        return code

    def _take_step(self) -> None:
        self._step += 1
        self._is_saved = False
        batch = [self._items[number] for number in self._order.items(self._step)]
        lr = self._started.schedule.rate(self._step)
        outcome = self._tuner.learn(batch, lr=lr, seed=self._tuning.seed, step=self._step)
        self._count(outcome)
        self._meter.add(tokens=outcome.num_tokens, samples=len(batch), flops=0, waited=0)
        self._log.advance(self._step)
        if self._step % self._tuning.log_every == 0 or self._step == self._order.steps:
            figures = {
                **self._since.means(),
                "lr": lr,
                "grad_norm": outcome.grad_norm,
                "bad_losses": self._bad_losses.total,
                **self._meter.read(peak_flops=None),
            }
            self._log.write(TRAIN, self._step, figures)
            self._monitor(TRAIN, figures)
            self._since = Since()

    def _count(self, outcome: Outcome) -> None:
        """Add a step to the figures of the next log line, unless its loss is not finite.

        Raises:
            AgreedError: too many losses in a row were not finite.
        """
        bad, is_finite = self._bad_losses, math.isfinite(outcome.loss)
        if is_finite:
            self._since = self._since.plus(outcome)
        bad.count(outcome.loss, step=self._step, is_finite=is_finite, log=self._log)
        if not bad.are_too_many:
            return
        bad.condemn(self._saver, step=self._step)
        raise AgreedError(
            f"the loss was not finite {bad.streak} times in a row, the last time at step "
            f"{self._step:,}. {_diverged(self._tuning)}"
        )

    def _between_steps(self) -> int:
        """Evaluate and save when due; return the exit code if asked to stop, else 0."""
        self._saver.advance(bad_streak=self._bad_losses.streak)
        self._keep_best()
        epoch = self._order.ended_epoch(self._step)
        is_due = epoch is not None and epoch > self._evaluated
        if epoch is not None and is_due:
            self._is_saved = False
            if self._bad_losses.streak:
                self._pass_over(epoch)
            elif not self._evaluate(epoch):
                return self._asked_to_stop()
        every = self._tuning.save_every
        if is_due or (every and self._step % every == 0 and not self._is_saved):
            self._save()
        return 0

    def _pass_over(self, epoch: int) -> None:
        """Let an epoch count for nothing, because nobody knows whether its weights are any good."""
        self._evaluated = epoch
        self._log.say(
            f"epoch {epoch:,}/{self._tuning.epochs:,} is not evaluated: the loss was not finite "
            f"{self._bad_losses.streak} times in a row at its end"
        )

    def _evaluate(self, epoch: int) -> bool:
        """Evaluate an epoch and note if it is the best; return whether it was not stopped."""
        metrics = self._evaluation.metrics(stop=self._asked_to_stop)
        if metrics is None:
            return False
        is_judged = bool(metrics)
        # Without anything to tell epochs apart, the last one is the best.
        metrics = metrics or {"steps": self._step}
        here = Best(epoch=epoch, step=self._step, metrics=metrics)
        best = best_of_run.better(self.best, here)
        if best is here:
            # JSON, of which checkpoints are made, has no other figures.
            finite = {name: figure for name, figure in metrics.items() if math.isfinite(figure)}
            best = here = replace(here, metrics=finite)
            if not self._predict():
                return False
        self._log.record(EVALUATION, self._step, {"epoch": epoch, **metrics})
        self._monitor(EVALUATION, metrics)
        shown = "  ".join(f"{name} {figure:.4g}" for name, figure in metrics.items())
        note = f"  ({_standing(here, best)})" if is_judged else ""
        self._log.say(f"epoch {epoch:,}/{self._tuning.epochs:,}  {shown}{note}")
        self.best, self._evaluated = best, epoch
        return True

    def _monitor(self, event: str, figures: Mapping[str, float]) -> None:
        """Give figures to the monitors that DeepSpeed's JSON enables."""
        samples = self._step * self._tuning.batch_size
        self._tuner.stepper.monitor(event, figures, samples=samples)

    def _predict(self) -> bool:
        """Write the answers to the test items, if there are any; return whether not stopped."""
        lines = self._evaluation.predictions(stop=self._asked_to_stop)
        if lines and self._ranks.is_first:
            with atomic_write(self._tuning.save / PREDICTIONS) as handle:
                for line in lines:
                    handle.write(json_text(line).encode() + b"\n")
        return lines is not None

    def _asked_to_stop(self) -> int:
        return self._stop.agreed_exit_code(self._ranks)

    def _save(self) -> None:
        self._is_saved = True
        progress = Progress(
            evaluated=self._evaluated,
            bests=() if self.best is None else (self.best,),
            bad_losses=self._bad_losses.total,
            since=self._since,
        )
        state = {**self._started.state(progress), BAD_STREAK: self._bad_losses.streak}
        if self._started.is_saved and self._step == self._started.step:
            self._saver.amend(self._step, state)
        else:
            self._saver.save(step=self._step, state=state)
        self._keep_best()

    def _finish_saving(self) -> None:
        self._saver.finish(bad_streak=self._bad_losses.streak)
        self._keep_best()

    def _keep_best(self) -> None:
        if self.best is None or self.best is self._kept:
            return
        if best_of_run.keep(self._started.disk, self.best.step, self._ranks):
            self._kept = self.best


def _standing(here: Best, best: Best | None) -> str:
    if best is None:
        return "none counts so far: its figure is not finite"
    return "the best so far" if best is here else f"the best was epoch {best.epoch}"


def _diverged(tuning: Tuning) -> str:
    return (
        "The weights have most likely diverged. Start again in another --save than "
        f"{tuning.save}, with a lower --lr or a longer --warmup, in bf16 or fp32 rather than fp16."
    )


def finetune(config: Config, ranks: Ranks) -> int:
    """Train and return the exit code: 0, or that of the signal that stopped it."""
    stop = Stop()
    with gone_if_refused(config.tuning.save):
        started = start(config, ranks, stop=stop)
    with stop:
        folder = config.tuning.save if ranks.is_first else None
        log = RunLog(folder, step=started.step, steps=started.order.steps, show=ranks.is_first)
        for line in started.lines():
            log.say(line)
        try:
            run = Finetuning(started, log=log, stop=stop)
            code = run.run()
            if run.best is not None and not code:
                log.say(f"the best is {best_of_run.folder_of(config.tuning.save, run.best)}")
            return code
        finally:
            log.close()
