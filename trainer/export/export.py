"""An export: options in, a folder out that is whole or absent.

Files are made in `.tmp-export-NAME` beside the output, which is renamed when all of them are on the
disk. What a killed export left there is removed by the next one to the same output.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

import torch

from shards.errors import DamageError, UserError
from shards.manifest import TokenizerEntry, read_manifest
from shards.run import CAUSAL
from shards.storage.disk import disk_errors_explained
from shards.storage.files import files, make_folder
from shards.storage.lock import locked
from shards.storage.remote import any_path
from trainer.export.exporting import LLMC, REFERENCE, SAFETENSORS, TRANSFORMERS, Exporting
from trainer.export.glm import write_glm
from trainer.export.gpt2 import write_gpt2
from trainer.export.llmc import write_llmc
from trainer.export.reference import write_reference
from trainer.export.source import open_tensors
from trainer.export.subject import Subject
from trainer.opening import Opening
from trainer.tokenizer import TextTokenizer
from trainer.trained import Origin, find_origin, find_tokenizer
from trainer.weights.hugging_face import Training

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def export(path: Path, options: Exporting) -> list[str]:
    """Write a trained model in another form, and return lines about it for the user.

    Args:
        path: a run's folder, one of its checkpoints, a published checkpoint, or a folder of
            transformers.
        options: the form and the output.

    Raises:
        UserError: there is no model, the form cannot hold it, or the output exists.
        DamageError: a file of it is damaged.
    """
    output = options.output
    _check_absent(output)
    _check_nobody_is_in(output)
    opening = Opening(model=options.model, tokenizer=options.tokenizer)
    origin = find_origin(path, opening)
    _check_objective(origin, options)
    if not torch.accelerator.is_available():
        os.environ.setdefault("DS_ACCELERATOR", "cpu")  # else DeepSpeed warns when it is imported
    subject = _subject(origin, opening, options)
    output = output.resolve()
    place = output.parent / f".tmp-export-{output.name}"
    with locked(place):
        staged = place / "files"
        with disk_errors_explained(staged):
            shutil.rmtree(staged, ignore_errors=True)
            make_folder(staged)
        try:
            notes = _write(subject, staged, options)
            with disk_errors_explained(options.output):
                staged.replace(output)
        finally:
            shutil.rmtree(place, ignore_errors=True)
    where = f" after step {origin.step:,}" if origin.step is not None else ""
    return [
        f"{origin.path}: {origin.shape.num_parameters():,} parameters{where}, as {options.dtype}",
        *(f"{options.output / name}  {size:,} bytes" for name, size in files(output).items()),
        *notes,
        *(["the classifier's head is left out"] if subject.tensors.lacks_head else []),
    ]


def _check_absent(output: Path) -> None:
    with disk_errors_explained(output):
        if output.is_dir() and not any(output.iterdir()):
            return
        if output.exists() or output.is_symlink():
            raise UserError(
                f"--output {output} exists: name a folder that does not, or remove it first. An "
                "export never changes what is there."
            )


def _check_nobody_is_in(output: Path) -> None:
    """Refuse to replace the folder that the user works in, who would be left in a removed one."""
    if Path.cwd().is_relative_to(output.resolve()):
        raise UserError(
            f"--output {output} is the folder that you are in: name one to be made in it, as "
            f"{output / 'exported'}."
        )


def _check_objective(origin: Origin, options: Exporting) -> None:
    """Refuse to hand a model on to a reader that would ask something else of it."""
    if options.to in (TRANSFORMERS, LLMC) and origin.objective != CAUSAL:
        raise UserError(
            f"the model in {origin.path} fills blanks (objective {origin.objective}), and --to "
            f"{options.to} is for models that predict the next token: give --to {REFERENCE} or "
            f"--to {SAFETENSORS}."
        )


def _write(subject: Subject, folder: Path, options: Exporting) -> list[str]:
    if options.to == TRANSFORMERS:
        return write_gpt2(subject, folder, shard_bytes=options.shard_bytes)
    if options.to == SAFETENSORS:
        return write_glm(subject, folder, shard_bytes=options.shard_bytes)
    if options.to == LLMC:
        return write_llmc(subject, folder)
    return write_reference(subject, folder, num_ranks=options.model_parallel or 1)


def _subject(origin: Origin, opening: Opening, options: Exporting) -> Subject:
    tokenizer = _tokenizer(origin, opening)
    rows = origin.shape.vocab_size
    entry = _entry(origin)
    own = rows if options.to != LLMC else _own_ids(entry, tokenizer, rows=rows)
    vocabulary = own if options.vocabulary is None else options.vocabulary
    if not 0 < vocabulary <= rows:
        raise UserError(f"--vocabulary {vocabulary:,}: the embedding has {rows:,} rows.")
    special = tokenizer.special if tokenizer else entry.special if entry else {}
    if special.get("eos", 0) >= vocabulary:
        raise UserError(
            f"--vocabulary {vocabulary:,} leaves out the end of a text, id {special['eos']:,}: "
            "give at least one more than that."
        )
    return Subject(
        tensors=open_tensors(origin, _DTYPES[options.dtype]),
        shape=origin.shape,
        objective=origin.objective,
        step=origin.step,
        vocabulary=vocabulary,
        special=special,
        tokenizer=tokenizer,
        training=_training(origin, tokenizer),
    )


def _training(origin: Origin, tokenizer: TextTokenizer | None) -> Training:
    """Return what is known of a model's training, its tokenizer if only a flag names that."""
    identity = origin.tokenizer
    if not identity and tokenizer is not None:
        identity = {"name": tokenizer.spec, "sha256": tokenizer.sha256}
    return Training(task_mask=origin.task_mask, tokenizer=identity)


def _tokenizer(origin: Origin, opening: Opening) -> TextTokenizer | None:
    """Return the tokenizer; None if no flag names one and the data do not hold theirs.

    Raises:
        UserError: the one that a flag names cannot be used.
        DamageError: the one that is held is damaged.
    """
    try:
        return find_tokenizer(origin, opening)
    except DamageError:
        raise
    except UserError:
        if opening.tokenizer is not None:
            raise
        return None  # what is missing is told with the export


def _entry(origin: Origin) -> TokenizerEntry | None:
    """Return what the manifest of the data says of their tokenizer, if the data are there."""
    for directory in origin.data:
        with suppress(UserError):
            return read_manifest(any_path(directory)).tokenizer
    return None


def _own_ids(entry: TokenizerEntry | None, tokenizer: TextTokenizer | None, *, rows: int) -> int:
    """Return how many ids mean text or its end; all rows if it is not known."""
    if tokenizer is not None:
        return len(tokenizer.pieces())
    if entry is None:
        return rows
    return max(entry.pieces, entry.special["eos"] + 1)
