"""The training loop: `Trainer.run` takes steps from the last checkpoint to the end of the run.

    take a step ─▶ evaluate when due ─▶ save when due ─▶ prepare the next step ─▶ …

A `TrainingTask` decides how a step is taken and evaluated. There are two: `PretrainTask`
(pretraining.py) trains on the windows of a dataset, and `FinetuneTask` (finetune/task.py) trains on
the items of a fine-tuning task. Both give micro-batches to the `DeepSpeedEngine` (engine.py), which
calls the model (model/model.py) and updates its weights.

    train.py ─▶ RankCommand.run (command.py) ─▶ hooks.train ─▶ pretraining.train
        ─▶ Trainer.run ─▶ PretrainTask.train_step ─▶ DeepSpeedEngine.train_step ─▶ GLM.forward
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from trainer.checkpoint import BAD_STREAK, steps_in
from trainer.distributed import CollectiveError, Stop
from trainer.log import SPEED, TRAIN, RunLog
from trainer.metrics import SpeedMeter, StepResult, peak_flops_of
from trainer.saver import CheckpointSaver
from trainer.train_state import TrainState

_WARM_UP = 10
"""The number of steps after a start that do not count for the speed of the run. If fewer than twice
that number of steps remain, half of the remaining steps do not count."""


@dataclass(frozen=True, kw_only=True)
class Hook:
    """A function that a command adds to a run, and that runs after some of its steps."""

    every: int | str
    """The number of steps from one call to the next, or 0 for never, or EPOCH."""
    run: Callable[[int, RunLog, Stop], None]
    """A function of the number of the last step, the log and the signals to stop; all ranks call
    it."""


class TrainingTask(Protocol):
    """The part of a run that depends on its data.

    All ranks call every method, and get the same results.
    """

    def train_step(self, step: int, *, lr: float) -> StepResult:
        """Update the weights, or skip the step if its loss or a gradient is not finite."""

    def metrics(self) -> Mapping[str, float]:
        """Return loss and accuracy of the steps since the last call, for the log."""

    def position(self, step: int) -> int:
        """Return the number of samples up to a step."""

    def before_step(self, step: int, log: RunLog, *, at_checkpoint: bool) -> None:  # noqa: ARG002
        """Prepare the step after `step`.

        Args:
            step: the last step taken.
            log: the log of the run.
            at_checkpoint: whether the run begins or resumes after `step`, or a checkpoint was due;
                if so, the next step may be the first to read newer data.
        """
        return

    def evaluate(self, step: int, log: RunLog, stop: Stop, *, bad_streak: int | None) -> bool:
        """Evaluate the model and log the figures if that is due; return whether it was due.

        Args:
            step: the last step taken.
            log: the log of the run.
            stop: the signals to stop, which are checked during the evaluation.
            bad_streak: the number of bad steps in a row up to `step`; None if this process did not
                take the step itself.
        """

    def should_save(self, step: int) -> bool:
        """Return whether a checkpoint is due after a step."""

    def checkpoint_state(self, step: int) -> dict[str, Any]:
        """Return the task's part of a checkpoint."""

    def after_save(self) -> None:
        """Do what is due once a checkpoint is complete."""
        return

    def debug_hint(self, step: int) -> str:  # noqa: ARG002
        """Return advice, for a message, about bad steps up to a step."""
        return ""


class Trainer:
    """Takes the steps of a run, logs them, and saves checkpoints."""

    def __init__(self, state: TrainState, task: TrainingTask, *, log: RunLog, stop: Stop) -> None:
        """Prepare to continue a run after step `state.step`."""
        self._state, self._task, self._config = state, task, state.config
        self._log, self._stop = log, stop
        self.step = state.step
        """The last step taken."""
        self._needs_save = False
        self._bad_losses, self._bad_streak, self._skipped = state.bad_losses, 0, 0
        self._peak_flops = peak_flops_of(state.ranks, state.precision)
        self._meter, self._speed = SpeedMeter(), SpeedMeter()
        self._warm = state.step + min(_WARM_UP, (state.steps - state.step) // 2)
        self._saver: CheckpointSaver | None = None
        if (folder := self._config.save) is not None:
            keep = self._config.keep
            self._saver = CheckpointSaver(
                state.engine.wrapped, folder, keep=keep, ranks=state.ranks
            )

    def run(self) -> int:
        """Train to the end, or until a signal to stop; return the exit code."""
        self._task.after_save()
        code = self._evaluate(None)
        self._before_step(at_checkpoint=True)
        with self._profiler() as after_step:
            while self.step < self._state.steps and not code:
                self._take_step()
                after_step()
                code = self._stop.exit_code() or self._between_steps()
        with self._uncounted():
            if self._needs_save:
                self._save()
            self._prune()
        if not code:
            self._log_speed()
        self._state.ranks.run_on_all_ranks(self._log.check)
        return code

    def _take_step(self) -> None:
        self.step += 1
        self._needs_save = True
        lr = self._state.schedule.rate(self.step)
        result = self._task.train_step(self.step, lr=lr)
        self._count(result)
        for meter in (self._meter, self._speed):
            meter.add(result)
        if self.step == self._warm:
            self._speed.restart()
        self._log.advance(self.step)
        if self.step % self._config.log_every == 0 or self.step == self._state.steps:
            samples = self._task.position(self.step)
            figures = {
                **self._task.metrics(),
                "lr": lr,
                "grad_norm": result.grad_norm,
                "skipped": self._skipped,
                "bad_losses": self._bad_losses,
                "samples": samples,
                **self._meter.read(peak_flops=self._peak_flops),
            }
            self._skipped = 0
            self._log.write(TRAIN, self.step, figures, samples=samples)
            self._state.ranks.run_on_all_ranks(self._log.check)

    def _count(self, result: StepResult) -> None:
        """Count skipped steps, and bad steps, whose loss or gradients are not finite.

        With dynamic loss scaling, a skipped step with a finite loss is not bad: the scale falls
        until the gradients fit, and DeepSpeed raises an error if it can fall no further.

        Raises:
            CollectiveError: too many steps in a row were bad.
        """
        self._skipped += not result.applied
        if result.is_finite and (result.applied or self._state.engine.scales_loss):
            self._bad_streak = 0
            return
        self._bad_losses += 1
        self._bad_streak += 1
        reason = f"the loss is {result.loss}"
        if result.is_finite:
            reason = "a gradient is NaN or infinite"
        self._log.show(f"step {self.step:,}: {reason}; its batch is skipped")
        if self._bad_streak >= self._config.max_bad_losses:
            self._give_up()

    def _give_up(self) -> None:
        """Mark the checkpoint whose weights the bad steps used; no bad step changed the weights.

        Raises:
            CollectiveError: always; the message says how to continue.
        """
        last = self.step - self._bad_streak
        if self._saver is not None:
            self._saver.update_state(last, {BAD_STREAK: self._bad_streak})
        folder = self._config.save
        is_before = folder is not None and any(step < last for step in steps_in(folder))
        again = (
            f"Run it again, and {folder} resumes from the newest checkpoint before that,"
            if is_before
            else "There is no checkpoint from before: start again in another --save,"
        )
        raise CollectiveError(
            f"the loss or the gradients were not finite in {self._bad_streak} steps in a row, the "
            f"last of them step {self.step:,}: the weights have most likely diverged. {again} with "
            "a lower --lr or a longer --warmup, in bf16 or fp32 rather than fp16."
            f"{self._task.debug_hint(self.step)}"
        )

    def _between_steps(self) -> int:
        """Evaluate and save when due; return the exit code of a signal to stop, else 0."""
        with self._uncounted():
            self._prune()
            code = self._evaluate(self._bad_streak)
            is_due = not code and self._task.should_save(self.step)
            if is_due and self._needs_save:
                self._save()
            self._before_step(at_checkpoint=is_due)
            return code

    @contextmanager
    def _uncounted(self) -> Iterator[None]:
        """Exclude the time within the block from the measured speed."""
        begin = time.perf_counter()
        yield
        for meter in (self._meter, self._speed):
            meter.pause(time.perf_counter() - begin)

    def _evaluate(self, bad_streak: int | None) -> int:
        """Evaluate when due; return the exit code of a signal to stop, else 0."""
        if not self._task.evaluate(self.step, self._log, self._stop, bad_streak=bad_streak):
            return 0
        self._needs_save = True
        code = self._stop.exit_code()
        if bad_streak is None and not code:
            self._save()
        return code

    def _before_step(self, *, at_checkpoint: bool) -> None:
        if self.step < self._state.steps:
            self._task.before_step(self.step, self._log, at_checkpoint=at_checkpoint)

    def _save(self) -> None:
        self._needs_save = False
        if self._saver is None:
            return
        state = {
            **self._state.resume_fingerprint,
            **self._task.checkpoint_state(self.step),
            "bad_losses": self._bad_losses,
            BAD_STREAK: self._bad_streak,
        }
        if self._state.resumes_in_place and self.step == self._state.step:
            self._saver.update_state(self.step, state)
        else:
            self._saver.save(step=self.step, state=state)
        self._task.after_save()

    def _prune(self) -> None:
        """Remove old checkpoints, unless the last step was bad."""
        if self._saver is not None and not self._bad_streak:
            self._saver.prune()

    def _log_speed(self) -> None:
        """Log the mean speed of a run that has ended."""
        steps = self._speed.steps
        if not steps:
            return
        speed = self._speed.read(peak_flops=self._peak_flops)
        mfu = f", MFU {speed['mfu']:.1%}" if "mfu" in speed else ""
        line = (
            f"{speed['samples_per_second']:,.1f} samples/s, {speed['tokens_per_second']:,.0f} "
            f"tokens/s{mfu}: the mean of steps {self.step - steps + 1:,} to {self.step:,}, "
            "without validating and saving"
        )
        self._log.write(SPEED, self.step, speed, line=line)

    @contextmanager
    def _profiler(self) -> Iterator[Callable[[], None]]:
        """Write a trace of steps 6 to 8 to the run's folder, for chrome://tracing or Perfetto.

        Yields a function that the caller calls after each step.
        """
        folder, rank = self._config.save, self._state.ranks.rank
        if not self._config.profile or folder is None:
            yield lambda: None
            return
        path = folder / "profile" / f"rank-{rank:05d}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        with torch.profiler.profile(
            schedule=torch.profiler.schedule(wait=4, warmup=1, active=3, repeat=1),
            on_trace_ready=lambda profile: profile.export_chrome_trace(str(path)),
        ) as profile:
            yield profile.step
