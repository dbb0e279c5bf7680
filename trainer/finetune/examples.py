"""Reads the examples of a fine-tuning run, and checks them before its first step."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shards.commands.flags import flag_of, non_defaults
from shards.errors import UserError
from shards.records import to_json
from trainer.checkpoint import Checkpoint
from trainer.finetune.command import Finetune
from trainer.finetune.epoch_order import EpochOrder
from trainer.finetune.scoring import have_choices
from trainer.import_weights.loaded_model import ModelSource
from trainer.import_weights.weights import listed
from trainer.model.sizes import ModelConfig
from trainer.tasks.metrics import rouge
from trainer.tasks.rows import Example
from trainer.tasks.task import SPLITS, TRAIN, VALIDATION
from trainer.tokenizer import TextTokenizer

KNOWN = "known"
"""The split with the validation items and their answers, for tasks that generate text."""


def read_examples(
    config: Finetune, source: ModelSource, tokenizer: TextTokenizer
) -> dict[str, list[Example]]:
    """Return the examples of all splits that have a file.

    Raises:
        UserError: there are no training items, or items do not fit the task or the model.
    """
    task, examples = config.described_task, dict[str, list[Example]]()
    _check_folder(config.data, task.file(config.data, TRAIN))
    if task.IS_GENERATED and not config.by_loss and task.file(config.data, VALIDATION).is_file():
        rouge(["here"], ["here"])  # reports a missing library now, not after an epoch
    # Rows contain the answers only if they are read as training items.
    known = [(KNOWN, VALIDATION, TRAIN)] if task.IS_GENERATED else []
    for name, file_of, split in (*((split, split, split) for split in SPLITS), *known):
        path = task.file(config.data, file_of)
        if name != TRAIN and not path.is_file():
            continue
        examples[name] = task.examples(
            path,
            split=split,
            tokenizer=tokenizer,
            options=config.prompt_options,
            prompt_format=source.prompt_format,
        )
        _check_positions(
            examples[name], source.shape, cuts="length" in task.USED_OPTIONS, where=path
        )
    _check_uses(config, examples)
    return examples


def _check_folder(folder: Path, train: Path) -> None:
    """Check that a folder has a file of training items; `train` is the usual path of the file.

    Raises:
        UserError: there is no such folder or file.
    """
    if folder.is_file():
        raise UserError(
            f"--data {folder} is a file, and a folder is expected: put it there as "
            f"train{folder.suffix}, next to it val{folder.suffix} and test{folder.suffix} if you "
            "have them."
        )
    if not folder.is_dir():
        raise UserError(f"--data {folder}: there is no such folder.")
    if not train.is_file():
        there = sorted(path.name for path in folder.iterdir())
        raise UserError(
            f"--data {folder} has no {train.name}, nor train.json or train.source with "
            f"train.target; it has {listed(there) or 'no files'}."
        )


def _check_uses(config: Finetune, examples: Mapping[str, Sequence[Example]]) -> None:
    """Check that every flag that differs from its default has an effect on the examples.

    Raises:
        UserError: a flag has no effect; the message names it.
    """
    chosen = have_choices(examples[TRAIN])
    is_summed = chosen and not examples[TRAIN][0].words
    uses = {
        "loss": (chosen, "is for tasks with choices"),
        "length_penalty": (is_summed, "is for choices that may have several tokens"),
        "label_smoothing": (not chosen, "is for tasks that generate text"),
        "by_loss": (
            VALIDATION in examples,
            "picks the best epoch by val.jsonl, which is missing",
        ),
    }
    for name in non_defaults(config):
        has_use, meaning = uses.get(name, (True, ""))
        if not has_use:
            raise UserError(f"{flag_of(name)} {meaning}; the task {config.task} does not use it.")


def _check_positions(
    examples: Sequence[Example], shape: ModelConfig, *, cuts: bool, where: Path
) -> None:
    """Check that a model has a position for each token.

    Args:
        examples: the examples of a file.
        shape: the shape of the model.
        cuts: whether the task cuts its rows to --length.
        where: the path of the file.

    Raises:
        UserError: an example has more tokens than the model has positions.
    """
    most = shape.max_positions
    remedy = (
        f"--length {most}: the parts that the pattern allows to be cut are then cut. If that is "
        "not enough, shorten the item, or leave it out"
        if cuts
        else f"--source-length and --target-length of at most {most} each"
    )
    for example, row in ((one, row) for one in examples for row in one.rows):
        if int(row.position_ids.max()) >= shape.position_rows:
            raise UserError(
                f"{where}: {example.guid} takes {len(row)} tokens, and the model has {most} "
                "positions, which fine-tuning cannot add to (trainer.train --extend-positions "
                f"can): give {remedy}."
            )


def identity_of(source: ModelSource, tokenizer: TextTokenizer) -> dict[str, Any]:
    """Return a run's identity in the form of trainer.train, so that the same code opens the run."""
    name = source.tokenizer.get("name", tokenizer.spec)
    return {
        "objective": source.objective,
        "blanks": {"task_mask": source.task_mask},
        "isolate_documents": True,
        "tokenizer": {"name": name, "sha256": tokenizer.sha256},
    }


def fixed_values(config: Finetune, examples: Mapping[str, Sequence[Example]]) -> dict[str, Any]:
    """Return the task, its options and hashes of its items, which must not change during a run."""
    return {
        "task": config.described_task.name,
        **to_json(config.prompt_options),
        "items": {split: _fingerprint(several) for split, several in examples.items()},
    }


def _fingerprint(examples: Sequence[Example]) -> str:
    """Return a hash of items in the form that the model sees."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(f"{example.guid} {example.label} {example.words}".encode())
        for row in example.rows:
            digest.update(row.tokens.tobytes() + row.targets.tobytes())
    return digest.hexdigest()[:16]


def check_no_items_lost(checkpoint: Checkpoint, order: EpochOrder) -> None:
    """Check that the step after a checkpoint begins with the next item.

    With --across-epochs, the last batch of a finished run may be short, yet the next step begins
    where a full batch would have ended.

    Raises:
        UserError: a run with more epochs would leave out the items in between.
    """
    epochs = int(checkpoint.state["options"].get("epochs", order.epochs))
    lost = checkpoint.step * order.batch_size - epochs * order.num_items
    if order.across_epochs and order.epochs > epochs and lost > 0:
        raise UserError(
            f"--epochs {order.epochs}: the run in {checkpoint.folder.parent} ended after {epochs}, "
            f"and its last batch was short; with --across-epochs the next one would begin {lost} "
            f"items further on, which epoch {epochs + 1} would lack. Set --epochs back, or start a "
            f"new run from its weights: --init-from {checkpoint.folder} --save OTHER."
        )
