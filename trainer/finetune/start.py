"""From a command line to a run of fine-tuning that is ready to take its next step.

Everything that can be refused is refused here, before the first step, and by all ranks together.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from shards.errors import UserError
from shards.flags import flag_of, given
from shards.records import from_json, to_json
from shards.run import CAUSAL
from trainer.checkpoints.checkpoint import Checkpoint
from trainer.checkpoints.disk import Disk
from trainer.finetune.batches import Scoring, are_chosen
from trainer.finetune.command import Finetune
from trainer.finetune.evaluation import KNOWN, Evaluation
from trainer.finetune.order import Order
from trainer.finetune.progress import Progress
from trainer.finetune.step import Tuner
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig
from trainer.opening import Opening
from trainer.rank_writer import RankWriter
from trainer.ranks import Ranks
from trainer.run import Ready
from trainer.start import (
    Subject,
    batch_line,
    dealt,
    differences,
    find_start,
    ready_fields,
    refuse_changes,
    span_line,
)
from trainer.step import make_model
from trainer.stop import Stop
from trainer.tasks.figures import rouge
from trainer.tasks.question import Question
from trainer.tasks.task import SPLITS, TRAIN, VALIDATION
from trainer.tokenizer import TextTokenizer
from trainer.trained import Origin, find_origin, find_tokenizer

_LEARNING = ("batch_size", "across_epochs", "loss", "length_penalty", "label_smoothing")
_JUDGING = ("by_loss", "beams", "beam_penalty", "no_repeat_ngram", "min_answer", "max_answer")
_DECISIVE = ("seed", *_LEARNING, *_JUDGING)


@dataclass(frozen=True, kw_only=True, eq=False)
class StartedTuning(Ready):
    """A run that is ready to learn items."""

    disk: Disk
    tuning: Finetune
    evaluation: Evaluation
    order: Order
    tuner: Tuner
    progress: Progress

    def lines(self) -> list[str]:
        """Return a summary of the run for its user."""
        tuning, task = self.tuning, self.tuning.described_task
        questions = self.evaluation.questions
        counts = ", ".join(f"{len(questions[s]):,} {s}" for s in SPLITS if s in questions)
        model = from_json(ModelConfig, self.fixed["identity"]["model"], where="model")
        shortened = sum(q.num_shortened for several in questions.values() for q in several)
        lines = [
            f"{task.name}: {counts}; the model has {model.num_parameters():,} parameters, "
            f"{self.precision}, ZeRO stage {self.stepper.stage}",
            batch_line(self, tuning.batch_size),
            span_line(self, f", {tuning.epochs} epochs"),
        ]
        if shortened:
            lines.append(f"{shortened:,} rows are shortened to fit")
        if VALIDATION not in questions:
            file = task.file(tuning.data, VALIDATION)
            lines.append(f"there is no {file.name}: the last epoch counts as the best")
        return lines

    def state(self, progress: Progress) -> dict[str, Any]:
        """Return what a checkpoint records about the run."""
        return {**self.fixed, "progress": to_json(progress)}


def start(tuning: Finetune, ranks: Ranks, *, stop: Stop) -> StartedTuning:
    """Return a run that is ready to learn items; all ranks call this.

    Args:
        tuning: the flags, nothing left open.
        ranks: of the run.
        stop: looked at while texts are written.

    Raises:
        UserError: the options, the files, the model, the ranks or the checkpoints do not fit.
    """
    disk, checkpoint = find_start(tuning, ranks, check=_check_state)
    path = tuning.init_from if checkpoint is None else checkpoint.folder
    opening = Opening(model=tuning.model or None, tokenizer=tuning.tokenizer)
    origin = ranks.together(lambda: find_origin(path, opening))
    tokenizer = ranks.together(lambda: find_tokenizer(origin, opening))
    questions = ranks.together(lambda: _read(tuning, origin, tokenizer))
    shape = replace(origin.shape, hidden_dropout=tuning.dropout, attention_dropout=tuning.dropout)
    order = Order(
        num_items=len(questions[TRAIN]),
        batch_size=tuning.batch_size,
        epochs=tuning.epochs,
        seed=tuning.seed,
        across_epochs=tuning.across_epochs,
    )
    ranks, micro = dealt(tuning, [tuning.batch_size], ranks)
    progress = checkpoint.part("progress", Progress) if checkpoint else Progress()
    glm = partial(GLM, smoothing=tuning.label_smoothing)
    subject = Subject(
        make=partial(make_model, shape, seed=tuning.seed, make=glm),
        init_from=origin.path,  # the newest of a run's checkpoints, where the flag names its folder
        micro=micro,
        size=tuning.batch_size,
        steps=order.steps,
        bad_losses=progress.bad_losses,
        identity=_identity(origin, shape, tokenizer),
        options={"epochs": tuning.epochs},
        check=partial(_check_same_run, tuning=_decisive(tuning, questions), order=order),
    )
    begun = ready_fields(tuning, subject, disk=disk, checkpoint=checkpoint, ranks=ranks)
    begun["fixed"] |= {
        "tuning": _decisive(tuning, questions),
        "run": {"mixes": [{"data": list(origin.data)}]},
    }
    tuner = Tuner(
        stepper=begun["stepper"],
        scoring=Scoring(
            pad=tokenizer.special.get("pad", tokenizer.special["eos"]),
            chosen=are_chosen(questions[TRAIN]),
            penalty=tuning.length_penalty,
        ),
        loss=tuning.loss,
        ranks=ranks,
    )
    writer = RankWriter(
        stepper=tuner.stepper,
        shape=shape,
        decoding=tuning.decoding,
        ranks=ranks,
        stop=stop,
        batch_size=tuner.stepper.micro_batch,
        counts_start=False,
    )
    evaluation = Evaluation(
        task=tuning.described_task,
        questions=questions,
        tuner=tuner,
        writer=writer,
        tokenizer=tokenizer,
        by_loss=tuning.by_loss,
    )
    return StartedTuning(
        **begun, tuning=tuning, evaluation=evaluation, order=order, tuner=tuner, progress=progress
    )


def _check_state(checkpoint: Checkpoint) -> None:
    """Check that a checkpoint is one of fine-tuning.

    Raises:
        UserError: it is not.
    """
    parts = ("tuning", "identity", "schedule", "progress")
    if any(not isinstance(checkpoint.state.get(name), dict) for name in parts):
        raise UserError(
            f"{checkpoint.folder} is no checkpoint of trainer.finetune: --save is where this run "
            "writes its own; give another folder. The model to start from is --init-from PATH."
        )


def _read(tuning: Finetune, origin: Origin, tokenizer: TextTokenizer) -> dict[str, list[Question]]:
    """Return the questions of all splits that there are.

    Raises:
        UserError: there is nothing to learn from, or items do not fit the task or the model.
    """
    task = tuning.described_task
    if not tuning.data.is_dir():
        raise UserError(f"--data {tuning.data}: there is no such folder.")
    if task.is_written and not tuning.by_loss and task.file(tuning.data, VALIDATION).is_file():
        rouge(["here"], ["here"])  # tells now, not after an epoch, that its library is not here
    questions = {}
    asked_as = {split: split for split in SPLITS}
    if task.is_written:
        # With their answers: those of training alone have them.
        asked_as[KNOWN] = TRAIN
    for name, split in asked_as.items():
        path = task.file(tuning.data, VALIDATION if name == KNOWN else split)
        if name != TRAIN and not path.is_file():
            continue
        questions[name] = task.questions(
            path,
            split=split,
            tokenizer=tokenizer,
            asking=tuning.asking,
            is_causal=origin.objective == CAUSAL,
            task_mask=origin.task_mask,
        )
        _check_positions(questions[name], origin.shape, takes=task.takes, where=path)
    _check_uses(tuning, questions)
    return questions


def _check_uses(tuning: Finetune, questions: Mapping[str, Sequence[Question]]) -> None:
    """Check that the questions of a task have a use for every flag that is given.

    Raises:
        UserError: they have none; the message names the flag.
    """
    chosen, first = are_chosen(questions[TRAIN]), questions[TRAIN][0]
    is_summed = chosen and not first.words
    has_use = {
        "loss": chosen,
        "length_penalty": is_summed,
        "label_smoothing": not chosen,
        "by_loss": VALIDATION in questions,
    }
    what = {
        "loss": "is of questions with choices",
        "length_penalty": "is of choices that may have several tokens",
        "label_smoothing": "is of texts",
        "by_loss": "picks the best epoch by val.jsonl, which is not there",
    }
    for name in given(tuning):
        if not has_use.get(name, True):
            raise UserError(f"{flag_of(name)} {what[name]}; {tuning.task} has no use for it.")


def _check_positions(
    questions: Sequence[Question], shape: ModelConfig, *, takes: Collection[str], where: Any
) -> None:
    """Check that a model has a position for each token.

    Args:
        questions: of a file.
        shape: the model's.
        takes: the fields of `Asking` that mean something to the task.
        where: the file.

    Raises:
        UserError: it has not.
    """
    most = shape.max_positions
    remedy = (
        f"--length {most}: what its pattern lets go is then cut. If that is not enough, shorten "
        "the item, or leave it out"
        if "length" in takes
        else f"--source-length and --target-length of at most {most} each"
    )
    for question in questions:
        for row in question.rows:
            last = len(row) - 1 if row.position_ids is None else int(row.position_ids.max())
            if last >= shape.position_rows:
                raise UserError(
                    f"{where}: {question.guid} takes {len(row)} tokens, and the model has {most} "
                    "positions, which fine-tuning cannot add to (trainer.train "
                    f"--extend-positions can): give {remedy}."
                )


def _identity(origin: Origin, shape: ModelConfig, tokenizer: TextTokenizer) -> dict[str, Any]:
    """Return what a checkpoint of trainer.train records, so that this one opens like those."""
    name = origin.tokenizer.get("name", tokenizer.spec)
    return {
        "model": to_json(shape),
        "objective": origin.objective,
        "blanks": {"task_mask": origin.task_mask},
        "isolate_documents": True,
        "tokenizer": {"name": name, "sha256": tokenizer.sha256},
    }


def _decisive(tuning: Finetune, questions: Mapping[str, Sequence[Question]]) -> dict[str, Any]:
    """Return what decides what is learnt and how it is judged, besides the identity: it stays."""
    return {
        "task": tuning.described_task.name,
        "asking": to_json(tuning.asking),
        **{name: getattr(tuning, name) for name in _DECISIVE},
        "items": {split: _fingerprint(several) for split, several in questions.items()},
    }


def _fingerprint(questions: Sequence[Question]) -> str:
    """Return what tells items apart as the model sees them."""
    digest = hashlib.sha256()
    for question in questions:
        digest.update(f"{question.guid} {question.label} {question.words}".encode())
        for row in question.rows:
            digest.update(row.tokens.tobytes() + row.targets.tobytes())
    return digest.hexdigest()[:16]


def _check_same_run(
    checkpoint: Checkpoint, identity: Mapping[str, Any], *, tuning: Mapping[str, Any], order: Order
) -> None:
    """Check that a checkpoint belongs to this run.

    Raises:
        UserError: the run differs in something that decides what is learnt; the message names it.
    """
    before = dict(checkpoint.state["tuning"])
    before.pop("pool", None)  # of classifiers, which former versions had
    changed = differences(checkpoint.state["identity"], identity) + differences(before, tuning)
    refuse_changes(changed, checkpoint, otherwise="start a new run: give another --save.")
    _check_no_items_lost(checkpoint, order)


def _check_no_items_lost(checkpoint: Checkpoint, order: Order) -> None:
    """Check that the next step begins with the item behind the last one of a checkpoint.

    Across epochs, the last batch of a run that has ended may be short, and the next begins where a
    whole one would have ended.

    Raises:
        UserError: a run of more epochs would leave out what lies between.
    """
    epochs = int(checkpoint.state["schedule"].get("epochs", order.epochs))
    lost = checkpoint.step * order.batch_size - epochs * order.num_items
    if order.across_epochs and order.epochs > epochs and lost > 0:
        raise UserError(
            f"--epochs {order.epochs}: the run in {checkpoint.folder.parent} ended after {epochs}, "
            f"and its last batch was short; with --across-epochs the next one would begin {lost} "
            f"items further on, which epoch {epochs + 1} would lack. Set --epochs back, or start a "
            f"new run from its weights: --init-from {checkpoint.folder} --save OTHER."
        )
