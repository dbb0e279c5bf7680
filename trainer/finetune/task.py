"""Fine-tuning: trains a model on the items of a task.

RUN/step-N               the newest checkpoint
RUN/best/step-N          the checkpoint of the best epoch, by the task's first metric
RUN/predictions.jsonl    answers of the best epoch to test.jsonl, in the format for submission
RUN/log.jsonl            losses, and the metrics of each epoch
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean
from typing import Any

from shards.commands.output import json_text, quantity
from shards.records import to_json
from shards.storage.disk import disk_errors_explained
from shards.storage.files import atomic_write
from trainer.config import EPOCH
from trainer.distributed import CollectiveError, Ranks, Stop
from trainer.finetune.command import Finetune
from trainer.finetune.epoch_order import EpochOrder
from trainer.finetune.examples import (
    KNOWN,
    check_no_items_lost,
    fixed_values,
    identity_of,
    read_examples,
)
from trainer.finetune.progress import BestEpoch, FinetuneProgress, better_epoch, keep_best
from trainer.finetune.scoring import Prediction, Scoring, have_choices
from trainer.finetune.step import FinetuneEngine
from trainer.generate.prompt import Blank, Prompt
from trainer.generate.rank_generator import RankGenerator
from trainer.generate.text_generator import text_of
from trainer.import_weights.load import broadcast_weights
from trainer.import_weights.loaded_model import find_tokenizer, resolve_model
from trainer.load_options import LoadOptions
from trainer.log import RunLog
from trainer.metrics import StepResult
from trainer.model.model import GLM
from trainer.resume import find_resume_point
from trainer.saver import run_folder_locked
from trainer.tasks.rows import Answer, Example
from trainer.tasks.task import SPLITS, TEST, TRAIN, VALIDATION, Lines
from trainer.tokenizer import TextTokenizer
from trainer.train_state import RunSpec, TrainState, init_train_state
from trainer.trainer import Trainer, TrainingTask

EVALUATION = "evaluation"
PREDICTIONS = "predictions.jsonl"
_DECISIVE = "log_probability"
"""The first figure of tasks that are judged by the loss of known texts."""


@dataclass(kw_only=True, eq=False)
class FinetuneTask(TrainingTask):
    """Training on items, epoch by epoch; the checkpoint of the best epoch is kept."""

    state: TrainState
    config: Finetune
    tokenizer: TextTokenizer
    examples: Mapping[str, Sequence[Example]]
    """The examples by split, for the splits that have a file."""
    order: EpochOrder
    engine: FinetuneEngine
    generator: RankGenerator
    progress: FinetuneProgress
    """The progress up to the last step."""
    data: Sequence[str]
    """The data that the model was pretrained on, which contain its tokenizer."""
    _kept: BestEpoch | None = None
    """The best epoch whose checkpoint is known to be kept."""
    _figures: list[tuple[float, float]] = field(default_factory=list)
    """Loss and accuracy of each step since the last line of the log."""

    def __post_init__(self) -> None:
        self._task = self.config.described_task

    def summary(self) -> list[str]:
        """Return lines that describe the run for its user."""
        config, task, shape = self.config, self._task, self.generator.shape
        counts = ", ".join(f"{len(self.examples[s]):,} {s}" for s in SPLITS if s in self.examples)
        shortened = sum(one.num_cut for several in self.examples.values() for one in several)
        lines = [
            f"{task.name}: {counts}; the model has {shape.num_parameters():,} parameters, "
            f"{self.state.precision}, ZeRO stage {self.state.engine.stage}",
            self.state.describe_batch(config.batch_size),
            self.state.describe_range(f", {config.epochs} epochs"),
        ]
        if shortened:
            lines.append(f"{quantity(shortened, 'row')} shortened to fit")
        if VALIDATION not in self.examples:
            file = task.file(config.data, VALIDATION)
            lines.append(f"there is no {file.name}: the last epoch counts as the best")
        return lines

    def train_step(self, step: int, *, lr: float) -> StepResult:
        """Train on the next batch of items."""
        batch = [self.examples[TRAIN][number] for number in self.order.items(step)]
        outcome, accuracy = self.engine.train_step(batch, lr=lr, seed=self.config.seed, step=step)
        if outcome.is_finite:
            self._figures.append((outcome.loss, accuracy))
        return outcome

    def metrics(self) -> Mapping[str, float]:
        """Return loss and accuracy of the steps since the last call."""
        columns = zip(*(self._figures or [(math.nan, math.nan)]), strict=True)
        self._figures = []
        return dict(zip(("loss", "accuracy"), map(fmean, columns), strict=True))

    def position(self, step: int) -> int:
        """Return the number of items up to a step, counting short batches as full ones."""
        return step * self.config.batch_size

    def evaluate(self, step: int, log: RunLog, stop: Stop, *, bad_streak: int | None) -> bool:  # noqa: ARG002
        """Evaluate the epoch that a step ended, if that was not done; return whether it was due."""
        epoch = self.order.ended_epoch(step)
        if epoch is None or epoch <= self.progress.evaluated:
            return False
        if not bad_streak:
            self._evaluate(epoch, step, log)
            return True
        self.progress = replace(self.progress, evaluated=epoch)
        log.show(
            f"epoch {epoch:,}/{self.config.epochs:,} is not evaluated: the loss or the gradients "
            "were not finite at its end"
        )
        return True

    def _evaluate(self, epoch: int, step: int, log: RunLog) -> None:
        """Evaluate an epoch and record whether it is the best, unless a signal stops the run."""
        metrics = self._metrics()
        if metrics is None:
            return
        is_judged = bool(metrics)
        # If there are no validation items, the last epoch is the best.
        metrics = metrics or {"steps": step}
        here = BestEpoch(epoch=epoch, step=step, metrics=metrics)
        best = better_epoch(self.progress.best, here)
        if best is here:
            # Checkpoints are JSON, which has no NaN and no infinity.
            finite = {name: figure for name, figure in metrics.items() if math.isfinite(figure)}
            best = here = replace(here, metrics=finite)
            if not self._predict():
                return
        shown = "  ".join(f"{name} {figure:.4g}" for name, figure in metrics.items())
        note = f"  ({_rank_note(here, best)})" if is_judged else ""
        log.write(
            EVALUATION,
            step,
            {"epoch": epoch, **metrics},
            samples=self.position(step),
            line=f"epoch {epoch:,}/{self.config.epochs:,}  {shown}{note}",
        )
        bests = () if best is None else (best,)
        self.progress = replace(self.progress, bests=bests, evaluated=epoch)

    def _predict(self) -> bool:
        """Write the answers to the test items, if there are any; return False if the run stops.

        Raises:
            CollectiveError: the file cannot be written.
        """
        examples = self.examples.get(TEST, ())
        answers = self._answers(examples) if examples else ()
        if answers:
            lines = self._task.prediction_lines(examples, answers)
            self.state.ranks.run_on_rank0(lambda: self._write_predictions(lines))
        return answers is not None

    def _write_predictions(self, lines: Lines) -> None:
        path = self.config.save / PREDICTIONS
        with disk_errors_explained(path), atomic_write(path) as handle:
            for line in lines:
                handle.write(json_text(line).encode() + b"\n")

    def should_save(self, step: int) -> bool:
        """Return whether an epoch has ended or a checkpoint is due by --save-every."""
        every = self.config.save_every
        is_due = every != EPOCH and step % int(every) == 0
        return is_due or self.order.ended_epoch(step) is not None

    def checkpoint_state(self, step: int) -> dict[str, Any]:  # noqa: ARG002
        """Return the task's part of a checkpoint."""
        run = {"mixes": [{"data": list(self.data)}]}
        return {"progress": to_json(self.progress), "run": run}

    def after_save(self) -> None:
        """Keep the checkpoint of the best epoch once it is complete."""
        best = self.progress.best
        if best is None or best is self._kept:
            return
        if keep_best(self.config.save, best, self.state.ranks):
            self._kept = best

    def _metrics(self) -> dict[str, float] | None:
        """Return the validation items' figures, the decisive one first; None if the run stops.

        The result is empty if there are no validation items.
        """
        if VALIDATION not in self.examples:
            return {}
        known: dict[str, float] = {}
        if self._task.IS_GENERATED:
            predictions = self._predictions(self.examples[KNOWN])
            if predictions is None:
                return None
            known = _text_figures(predictions)
            # A diverged model generates nothing that could be judged.
            if self.config.by_loss or not math.isfinite(known[_DECISIVE]):
                return known
        examples = self.examples[VALIDATION]
        answers = self._answers(examples)
        return None if answers is None else self._task.metrics(examples, answers) | known

    def _answers(self, examples: Sequence[Example]) -> Sequence[Answer] | None:
        """Return the model's answers to examples; None if the run stops."""
        if not self._task.IS_GENERATED:
            predictions = self._predictions(examples)
            return None if predictions is None else [one.answer for one in predictions]
        filled = self.generator.fill(len(examples), lambda number: self._prompt(examples[number]))
        if filled is None:
            return None
        return [text_of(one.tokens, self.tokenizer).strip() for (one,) in filled]

    def _predictions(self, examples: Sequence[Example]) -> list[Prediction] | None:
        """Return the model's predictions for examples; None if the run stops."""
        return self.engine.predict(examples, stop=self.generator.stop.exit_code)

    def _prompt(self, example: Example) -> Prompt:
        """Return the prompt of an example's row: all tokens before the answer.

        As in THUDM/GLM (commit 4f61ed7, tasks/seq2seq), only eop ends the text of a blank.
        """
        row = example.rows[0]
        *context, token = row.prompt
        causal = row.mask_at is None
        position, block_position = row.position_ids[:, len(context)].tolist()
        return Prompt(
            context=tuple(context),
            blanks=(Blank(token=token, position=position, block_position=block_position),),
            ends=frozenset({self.tokenizer.special["eos" if causal else "eop"]}),
            causal=causal,
        )


def _rank_note(here: BestEpoch, best: BestEpoch | None) -> str:
    if best is None:
        return "none counts so far: its figure is not finite"
    return "the best so far" if best is here else f"the best was epoch {best.epoch}"


def _text_figures(predictions: Sequence[Prediction]) -> dict[str, float]:
    """Return the figures of known texts; the first figure is decisive, and higher is better."""
    count = max(1, sum(one.num_targets for one in predictions))
    loss = sum(one.loss for one in predictions) / count
    accuracy = sum(one.correct for one in predictions) / count
    return {_DECISIVE: -loss, "token_accuracy": accuracy}


def open_task(config: Finetune, ranks: Ranks, *, stop: Stop) -> FinetuneTask:
    """Return the task of a run that is ready for its next step; all ranks call this.

    If anything does not fit, all ranks refuse it together here, before the first step.

    Args:
        config: the result of `Finetune.prepared`.
        ranks: the ranks of the run.
        stop: the signals to stop, which are checked while texts are generated.

    Raises:
        UserError: the options, the files, the model, the ranks or the checkpoints do not fit
            together.
    """
    checkpoint = find_resume_point(config, ranks, parts={"progress": dict})
    path = config.init_from if checkpoint is None else checkpoint.folder
    options = LoadOptions(model=config.model or None, tokenizer=config.tokenizer)
    source = ranks.run_on_all_ranks(lambda: resolve_model(path, options))
    tokenizer = ranks.run_on_all_ranks(lambda: find_tokenizer(source, options))
    examples = ranks.run_on_all_ranks(lambda: read_examples(config, source, tokenizer))
    shape = replace(source.shape, hidden_dropout=config.dropout, attention_dropout=config.dropout)
    order = EpochOrder(
        num_items=len(examples[TRAIN]),
        batch_size=config.batch_size,
        epochs=config.epochs,
        seed=config.seed,
        across_epochs=config.across_epochs,
    )
    progress = checkpoint.part("progress", FinetuneProgress) if checkpoint else FinetuneProgress()
    spec = RunSpec(
        shape=shape,
        seed=config.seed,
        make=partial(GLM, smoothing=config.label_smoothing),
        # If the flag names the folder of a run, this is the newest of its checkpoints.
        load_weights=partial(broadcast_weights, source.path, extend_positions=False, ranks=ranks),
        batch_sizes=[config.batch_size],
        steps=order.steps,
        identity={**identity_of(source, tokenizer), **fixed_values(config, examples)},
        options={"epochs": config.epochs},
        check=partial(check_no_items_lost, order=order),
    )
    state = init_train_state(config, spec, checkpoint=checkpoint, ranks=ranks)
    scoring = Scoring(
        pad=tokenizer.special.get("pad", tokenizer.special["eos"]),
        has_choices=have_choices(examples[TRAIN]),
        penalty=config.length_penalty,
    )
    generator = RankGenerator(
        engine=state.engine,
        shape=shape,
        decoding=config.decoding,
        ranks=ranks,
        stop=stop,
        batch_size=state.engine.micro_batch,
    )
    return FinetuneTask(
        state=state,
        config=config,
        tokenizer=tokenizer,
        examples=examples,
        order=order,
        engine=FinetuneEngine(engine=state.engine, scoring=scoring, loss=config.loss, ranks=ranks),
        generator=generator,
        progress=progress,
        data=source.data,
    )


def finetune(config: Finetune, ranks: Ranks) -> int:
    """Train and return the exit code: 0, or the code of the signal that stopped the run."""
    stop = Stop(ranks)
    with run_folder_locked(
        config.save, ranks, start=lambda: open_task(config, ranks, stop=stop)
    ) as task:
        return _finetune(task, stop)


def _finetune(task: FinetuneTask, stop: Stop) -> int:
    save = task.config.save
    with stop, closing(task.state.open_log(task.summary())) as log:
        code = Trainer(task.state, task, log=log, stop=stop).run()
        best = task.progress.best
        if best is not None and not code:
            log.show(f"the best is {best.folder(save)}")
    if best is None and not code:
        raise CollectiveError(
            "no epoch counts as the best: at the end of each the loss or the deciding figure was "
            "not finite. The weights have most likely diverged. Start again in another --save than "
            f"{save}, with a lower --lr or a longer --warmup, in bf16 or fp32 rather than fp16."
        )
    return code
