"""The steps of a training run, from where it starts to its end."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from shards.switches import numbers_of
from trainer.bad_losses import BadLosses
from trainer.benchmarks import benchmarks_of, main_figures
from trainer.checkpoints.disk import gone_if_refused
from trainer.checkpoints.saver import Saver, completed_on_error
from trainer.config import Config
from trainer.data import source_names
from trainer.deepspeed_json import BF16, FP16
from trainer.evaluate.validation import evaluate
from trainer.follow import Follower, text_ends
from trainer.log import SPEED, TASKS, TRAIN, VALIDATION, Meter, RunLog
from trainer.loss_tally import LossTally
from trainer.model.flops import peak_flops
from trainer.ranks import AgreedError, Ranks
from trainer.samples import open_samples
from trainer.settings import EPOCH, WAIT
from trainer.start import StartedRun, start
from trainer.step import StepResult
from trainer.stop import Stop

if TYPE_CHECKING:
    from trainer.harness import Benchmarks

_POLL = 5.0
"""Seconds between looks for a newer manifest while a run waits."""
_WARM_UP = 10
"""Steps of a start that do not count for the speed of the run, or half of fewer."""
_SHOW_EVERY = 60.0
"""Seconds between lines that say so."""
_DTYPES = {BF16: torch.bfloat16, FP16: torch.float16}


class Training:
    """The steps of a run, from where it starts to its end."""

    def __init__(
        self,
        started: StartedRun,
        *,
        benchmarks: "Benchmarks | None",
        follower: Follower,
        log: RunLog,
        stop: Stop,
    ) -> None:
        """Take over a run that is ready."""
        self._benchmarks = benchmarks
        self._samples = open_samples(started, stop=stop)
        self._started = started
        self._data = started.data
        self._follower = follower
        self._settings = started.config.settings
        self._ranks = started.ranks
        self._log = log
        self._stop = stop
        self._steps = started.steps
        self._step = started.step
        self._is_saved = True
        self._bad_losses = BadLosses(started.bad_losses, most=self._settings.max_bad_losses)
        self._skipped = 0
        self._batches = self._data.batches(self._step, self._ranks)
        self._text_ends = self._find_end_of_text()
        self._tally = LossTally.empty(source_names(self._data.sampler.streams))
        self._meter, self._speed = Meter(), Meter()
        self._warm = started.step + min(_WARM_UP, (started.steps - started.step) // 2)
        self._peak = _peak_flops(started)
        self._saver = _saver(started)

    def run(self) -> int:
        """Train to the end, or until asked to stop; return the exit code."""
        with completed_on_error(self._finish_saving):
            return self._take_steps()

    def _take_steps(self) -> int:
        code = self._prepare_data(look=True)
        with _profiler(self._settings.save, self._ranks, on=self._settings.profile) as after_step:
            while self._step < self._steps and not code:
                self._take_step()
                after_step()
                code = self._asked_to_stop() or self._between_steps()
        if not self._is_saved:
            self._save()
        self._finish_saving()
        if not code:
            self._tell_speed()
        return code

    def _tell_speed(self) -> None:
        """Log the speed of a run that has ended."""
        steps = self._speed.steps
        if not steps:
            return
        speed = self._speed.read(peak_flops=self._peak)
        mfu = f", MFU {speed['mfu']:.1%}" if "mfu" in speed else ""
        self._log.record(SPEED, self._step, speed)
        self._log.say(
            f"{speed['samples_per_second']:,.1f} samples/s, {speed['tokens_per_second']:,.0f} "
            f"tokens/s{mfu}: the mean of steps {self._step - steps + 1:,} to {self._step:,}, "
            "without validating and saving"
        )

    def _prepare_data(self, *, look: bool) -> int:
        """Make sure that the next step has its batch; return the exit code if asked to stop.

        Args:
            look: whether newer manifests may be taken, as at a checkpoint.
        """
        if self._step == self._steps:
            return 0
        if look:
            self._follower.look(self._data, self._position(self._step))
        self._switch_if_decided()
        return self._wait_for_text() if self._lacks_text() else 0

    def _position(self, step: int) -> int:
        """Return the number of samples up to a step."""
        return self._data.run.position_of(step)

    def _switch_if_decided(self) -> None:
        """Read the data that are decided for the next step."""
        run = self._follower.run_before(self._position(self._step + 1))
        if run.mixes == self._data.run.mixes:
            self._data = replace(self._data, run=run)
            return
        self._data = self._follower.open(run)
        self._batches = self._data.batches(self._step, self._ranks)
        self._text_ends = self._find_end_of_text()
        self._tally = self._tally.with_sources(source_names(self._data.sampler.streams))
        shown = ", ".join(f"{folder}@{number}" for folder, number in numbers_of(run).items())
        self._log.say(f"from step {self._step + 1:,} on: {shown}")

    def _find_end_of_text(self) -> int | None:
        """Return the position before which all text is new; None: it may be repeated."""
        return text_ends(self._data) if self._settings.at_end == WAIT else None

    def _lacks_text(self) -> bool:
        return self._text_ends is not None and self._position(self._step + 1) > self._text_ends

    def _wait_for_text(self) -> int:
        """Return once newer manifests have brought a batch, or with the exit code if stopped."""
        if not self._is_saved:
            self._save()
        self._finish_saving()
        begin, shown, code = time.perf_counter(), -math.inf, 0
        position = self._position(self._step)
        size = self._position(self._step + 1) - position
        while self._lacks_text() and not code:
            waited = time.perf_counter() - begin
            if waited - shown >= _SHOW_EVERY:
                self._log.say(
                    f"step {self._step:,}: all text has been seen; waiting for a newer manifest "
                    f"({waited / 60:,.0f} minutes so far)"
                )
                shown = waited
            time.sleep(_POLL)
            self._follower.look_again(self._data, position, size=size)
            self._switch_if_decided()
            code = self._asked_to_stop()
        return code

    def _take_step(self) -> None:
        """Take the next step."""
        asked = time.perf_counter()
        batch = next(self._batches)
        waited = time.perf_counter() - asked
        self._step += 1
        self._is_saved = False
        lr = self._started.schedule.rate(self._step)
        seed = self._data.run.seed
        result = self._started.stepper(
            batch, lr=lr, seed=seed, step=self._step, sources=self._tally.sources
        )
        self._count(result)
        share = result.tally.num_targets / max(1, result.num_tokens)
        length = result.num_tokens // result.num_samples
        shape = self._data.shape
        for meter in (self._meter, self._speed):
            meter.add(
                tokens=result.num_tokens,
                samples=result.num_samples,
                flops=result.num_tokens * shape.flops_per_token(length, target_share=share),
                waited=waited,
            )
        if self._step == self._warm:
            self._speed.restart()
        self._log.advance(self._step)
        if self._step % self._settings.log_every == 0 or self._step == self._steps:
            self._log_figures(lr=lr, grad_norm=result.grad_norm)

    def _count(self, result: StepResult) -> None:
        """Add a step to the figures of the next log line, unless its loss is not finite.

        Raises:
            AgreedError: too many losses in a row were not finite.
        """
        if not result.applied:
            self._skipped += 1
        if result.is_finite:
            self._tally += result.tally
        bad = self._bad_losses
        bad.count(result.tally.loss, step=self._step, is_finite=result.is_finite, log=self._log)
        if not bad.are_too_many:
            return
        if self._saver is not None:
            bad.condemn(self._saver, step=self._step)
        folder = self._settings.save
        again = (
            f"Run it again, and {folder} resumes from the newest checkpoint before that,"
            if folder
            else "There is no checkpoint from before (give --save): start again"
        )
        raise AgreedError(
            f"the loss was not finite {bad.streak} times in a row, the last time at "
            f"step {self._step:,}: the weights have most likely diverged. {again} with a lower "
            "--lr or a longer --warmup, in bf16 or fp32 rather than fp16. To see what a step "
            f"trains on: python -m shards trace {folder / 'run.json' if folder else 'RUN'} --step "
            f"{self._step - 1}."
        )

    def _log_figures(self, *, lr: float, grad_norm: float) -> None:
        figures = {
            **self._tally.figures(),
            "lr": lr,
            "grad_norm": grad_norm,
            "skipped": self._skipped,
            "bad_losses": self._bad_losses.total,
            "samples": self._data.run.position_of(self._step),
            **self._meter.read(peak_flops=self._peak),
        }
        self._write(TRAIN, figures)
        self._tally = LossTally.empty(self._tally.sources)
        self._skipped = 0

    def _between_steps(self) -> int:
        """Validate and save when due; return the exit code if asked to stop, else 0."""
        begin = time.perf_counter()
        if self._saver is not None:
            self._saver.advance(bad_streak=self._bad_losses.streak)
        if self._is_due(self._settings.eval_every):
            self._validate()
            self._examine()
        if self._samples is not None and self._is_due(self._settings.sample_every):
            self._samples.write(self._step, self._log, stop=self._asked_to_stop)
        is_due = self._is_due(self._settings.save_every)
        if is_due:
            self._save()
        code = self._asked_to_stop() or self._prepare_data(look=is_due)
        for meter in (self._meter, self._speed):
            meter.pause(time.perf_counter() - begin)
        return code

    def _is_due(self, every: int | str) -> bool:
        """Return whether what is done so often, and after the last step, is done after this one.

        Args:
            every: steps, 0 for never; EPOCH.
        """
        if every == EPOCH:
            size = self._started.epoch
            begin, end = self._position(self._step - 1), self._position(self._step)
            return self._step == self._steps or begin // size < end // size
        every = int(every)
        return every > 0 and (self._step == self._steps or self._step % every == 0)

    def _asked_to_stop(self) -> int:
        """Return the exit code if a rank was asked to stop, else 0; all ranks call this."""
        return self._stop.agreed_exit_code(self._ranks)

    def _validate(self) -> None:
        tally = evaluate(
            self._started.stepper,
            self._data,
            ranks=self._ranks,
            stop=self._asked_to_stop,
        )
        if tally is not None:
            self._write(VALIDATION, tally.figures())

    def _write(self, event: str, figures: Mapping[str, float]) -> None:
        """Log figures, and give them to the monitors of DeepSpeed's JSON."""
        self._log.write(event, self._step, figures)
        self._started.stepper.monitor(event, figures, samples=self._position(self._step))

    def _examine(self) -> None:
        if self._benchmarks is None:
            return
        answer, stop = self._started.stepper.answer, self._asked_to_stop
        figures = self._benchmarks.score(answer, ranks=self._ranks, stop=stop)
        if figures:
            self._log.record(TASKS, self._step, figures)
            self._log.say(f"step {self._step:,}/{self._steps:,}  {TASKS}  {main_figures(figures)}")
            samples = self._position(self._step)
            self._started.stepper.monitor(TASKS, figures, samples=samples)

    def _save(self) -> None:
        self._is_saved = True
        if self._saver is not None:
            state = self._started.state(
                self._step,
                self._data,
                bad_losses=self._bad_losses.total,
                bad_streak=self._bad_losses.streak,
            )
            self._saver.save(step=self._step, state=state)

    def _finish_saving(self) -> None:
        if self._saver is not None:
            self._saver.finish(bad_streak=self._bad_losses.streak)


def _saver(started: StartedRun) -> Saver | None:
    if started.disk is None:
        return None
    return Saver(
        started.stepper.engine,
        started.disk,
        keep=started.config.settings.keep,
        ranks=started.ranks,
    )


def train(config: Config, ranks: Ranks) -> int:
    """Train and return the exit code: 0, or that of the signal that stopped it."""
    with gone_if_refused(config.settings.save):
        started = start(config, ranks)
    benchmarks = ranks.together(lambda: benchmarks_of(started))
    with Stop() as stop:
        folder = config.settings.save if ranks.is_first else None
        log = RunLog(folder, step=started.step, steps=started.steps, show=ranks.is_first)
        for line in started.lines():
            log.say(line)
        follower = Follower(started.config, disk=started.disk, ranks=ranks, say=log.say)
        try:
            follower.save()
            training = Training(
                started, benchmarks=benchmarks, follower=follower, log=log, stop=stop
            )
            return training.run()
        finally:
            log.close()


def _peak_flops(started: StartedRun) -> float | None:
    """Return the peak FLOP/s of all devices together, None if it is not known."""
    if started.ranks.device.type != "cuda" or started.precision not in _DTYPES:
        return None
    name = torch.cuda.get_device_name(started.ranks.device)
    peak = peak_flops(name, _DTYPES[started.precision])
    return None if peak is None else peak * started.ranks.world


@contextmanager
def _profiler(folder: Path | None, ranks: Ranks, *, on: bool) -> Iterator[Callable[[], None]]:
    """Trace steps 6 to 8 into the run's folder, for chrome://tracing or Perfetto.

    Yields what to call after each step.
    """
    if not on or folder is None:
        yield lambda: None
        return
    path = folder / "profile" / f"rank-{ranks.rank:05d}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with torch.profiler.profile(
        schedule=torch.profiler.schedule(wait=4, warmup=1, active=3, repeat=1),
        on_trace_ready=lambda profile: profile.export_chrome_trace(str(path)),
    ) as profile:
        yield profile.step
