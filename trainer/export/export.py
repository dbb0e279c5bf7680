"""Exports a model to a folder that is either whole or absent.

Files are written to `.tmp-export-NAME` next to the output, which is renamed when all files are on
the disk. The next export to the same output removes the files that a killed export left there.

    hf            GPT2LMHeadModel.from_pretrained(OUTPUT) and AutoTokenizer read it
    safetensors   with the names and layout of THUDM/GLM, which are also ours; --init-from reads it
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import save_torch_state_dict
from safetensors import SafetensorError
from torch import Tensor

from shards.errors import DamageError, UserError
from shards.manifest import read_manifest
from shards.records import to_json
from shards.sampling.plan import CAUSAL
from shards.storage.disk import disk_errors_explained
from shards.storage.files import atomic_write, list_files, make_folder, sync_folder, write_json
from shards.storage.lock import lock_dir
from shards.storage.remote import any_path
from trainer.distributed import DTYPES
from trainer.export.options import SAFETENSORS, TRANSFORMERS, ExportOptions
from trainer.import_weights import gpt2
from trainer.import_weights.config_json import CONFIG, GLM_TYPE, SHAPE, TRAINING, TrainingInfo
from trainer.import_weights.loaded_model import ModelSource, find_tokenizer, resolve_model
from trainer.import_weights.read import read_weights
from trainer.load_options import LoadOptions
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig
from trainer.tokenizer import TextTokenizer

_ONE_FILE = 2**62
"""More bytes than any model has, so that weights are written to one file."""
_TOKENIZER = "tokenizer.json"
_NO_TOKENIZER = (
    "no tokenizer files: the run does not contain them; give --tokenizer and export again, or copy "
    "them there"
)
_OTHER_IDS = (
    f"no {_TOKENIZER}: transformers would give some texts other ids than {{spec}}, because it "
    "normalizes characters (as for nmt_nfkc) or splits words by other rules. Encode texts with the "
    "tokenizer's own file and library. A tokenizer that exports: train_tokenizer --normalization "
    "identity; build the data with it, and train on them"
)


def export(options: ExportOptions) -> list[str]:
    """Write a trained model in an export format, and return lines about it for the user.

    Args:
        options: the model, the format and the output.

    Raises:
        UserError: there is no model, the format does not support it, or the output exists.
        DamageError: a file of the model is damaged.
    """
    _check_output(options.output)
    if not torch.accelerator.is_available():
        os.environ.setdefault("DS_ACCELERATOR", "cpu")  # else DeepSpeed warns when it is imported
    load_options = LoadOptions(model=options.model, tokenizer=options.tokenizer)
    source = resolve_model(options.path, load_options)
    if options.to == TRANSFORMERS and source.objective != CAUSAL:
        raise UserError(
            f"the model in {source.path} fills blanks (objective {source.objective}), and --to "
            f"{TRANSFORMERS} is for models that predict the next token: give --to {SAFETENSORS}."
        )
    tokenizer = _tokenizer(source, load_options)
    config = _config(source, tokenizer, options)
    state = _state(source, DTYPES[options.dtype])
    if options.to == TRANSFORMERS:
        state = gpt2.exported(state, vocabulary=config["vocab_size"])
    with _new_folder(options.output) as folder:
        _write_weights(state, folder, options)
        write_json(folder / CONFIG, config)
        if options.to == TRANSFORMERS:
            ends = {name: config[name] for name in ("bos_token_id", "eos_token_id")}
            write_json(folder / "generation_config.json", {**ends, "_from_model_config": False})
        notes = _write_tokenizer(source, tokenizer, folder, options)
    where = f" after step {source.step:,}" if source.step is not None else ""
    written = list_files(options.output).items()
    return [
        f"{source.path}: {source.shape.num_parameters():,} parameters{where}, as {options.dtype}",
        *(f"{options.output / name}  {size:,} bytes" for name, size in written),
        *notes,
    ]


@contextmanager
def _new_folder(output: Path) -> Iterator[Path]:
    """Yield a folder that is synced to the disk and renamed to the output when the block ends."""
    output = output.resolve()
    place = output.parent / f".tmp-export-{output.name}"
    staged = place / "files"
    with lock_dir(place), disk_errors_explained(output):
        shutil.rmtree(staged, ignore_errors=True)
        make_folder(staged)
        try:
            yield staged
            for path in staged.iterdir():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
            sync_folder(staged)
            staged.replace(output)
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _check_output(output: Path) -> None:
    """Refuse an output folder that exists or whose replacement would delete the user's files."""
    if Path.cwd().is_relative_to(output.resolve()):
        raise UserError(
            f"--output {output} is the current folder: choose a new folder in it, such as "
            f"{output / 'exported'}."
        )
    with disk_errors_explained(output):
        is_empty = output.is_dir() and not any(output.iterdir())
        if not is_empty and (output.exists() or output.is_symlink()):
            raise UserError(
                f"--output {output} exists: choose another folder, or remove it first. An "
                "export never changes existing files."
            )


def _state(source: ModelSource, dtype: torch.dtype) -> dict[str, Tensor]:
    """Return the weights of a model, converted to one of torch's types.

    Raises:
        UserError: weights do not fit the model, are not finite, or are out of the type's range.
        DamageError: a file is damaged.
    """
    weights = read_weights(source.path, vocab_size=source.shape.vocab_size)
    shapes = _parameter_shapes(source.shape)
    weights.check(shapes)
    state = {}
    for name in shapes:
        value = weights.read(name).detach()
        state[name] = value.to(dtype, copy=True)  # no other tensor shares these bytes
        if bool(state[name].isfinite().all()):
            continue
        if bool(value.isfinite().all()):
            raise UserError(
                f"{name} has values up to {value.abs().max().item():.3g}, which {dtype} cannot "
                "hold: give --dtype bf16 or fp32."
            )
        raise UserError(
            f"{name} has values that are NaN or infinite: the run had diverged by then. Export an "
            "earlier checkpoint: RUN/step-N."
        )
    return state


def _write_weights(state: Mapping[str, Tensor], folder: Path, options: ExportOptions) -> None:
    try:
        save_torch_state_dict(dict(state), folder, max_shard_size=options.shard_bytes or _ONE_FILE)
    except SafetensorError as error:  # such as if the disk is full
        raise UserError(
            f"the weights could not be written ({error}): make room and run the same command again."
        ) from error


def _config(
    source: ModelSource, tokenizer: TextTokenizer | None, options: ExportOptions
) -> dict[str, Any]:
    """Return the content of config.json.

    Raises:
        UserError: --vocabulary does not fit the model.
    """
    special = tokenizer.special if tokenizer else _special_of_data(source)
    vocabulary, rows = options.vocabulary, source.shape.vocab_size
    if vocabulary is not None and not 0 < vocabulary <= rows:
        raise UserError(f"--vocabulary {vocabulary:,}: the embedding has {rows:,} rows.")
    vocabulary = vocabulary or rows
    if special.get("eos", 0) >= vocabulary:
        raise UserError(
            f"--vocabulary {vocabulary:,} leaves out the end-of-text token, id {special['eos']:,}: "
            "give at least one more than that."
        )
    dtype = str(DTYPES[options.dtype]).removeprefix("torch.")
    training = {one.name: getattr(source, one.name) for one in fields(TrainingInfo)}
    if not source.tokenizer and tokenizer is not None:
        training["tokenizer"] = {"name": tokenizer.spec, "sha256": tokenizer.sha256}
    shared = {TRAINING: to_json(training), "torch_dtype": dtype}
    if options.to == TRANSFORMERS:
        eos = special.get("eos")
        return {**gpt2.configuration(source.shape, vocabulary=vocabulary, eos=eos), **shared}
    return {
        "model_type": GLM_TYPE,
        SHAPE: to_json(source.shape),
        "objective": source.objective,
        "step": source.step,
        "vocabulary": vocabulary,
        "special_tokens": dict(special),
        **shared,
    }


def _tokenizer(source: ModelSource, load_options: LoadOptions) -> TextTokenizer | None:
    """Return the tokenizer; None if no flag names one and the data do not include one.

    Raises:
        UserError: the tokenizer that a flag names cannot be used.
        DamageError: the tokenizer in the data is damaged.
    """
    try:
        return find_tokenizer(source, load_options)
    except UserError as error:
        if isinstance(error, DamageError) or load_options.tokenizer is not None:
            raise
        return None  # the export reports that


def _special_of_data(source: ModelSource) -> Mapping[str, int]:
    """Return the special tokens in the manifest of the data; none if the data are not here."""
    for directory in source.data:
        with suppress(UserError):
            return read_manifest(any_path(directory)).tokenizer.special
    return {}


def _write_tokenizer(
    source: ModelSource, tokenizer: TextTokenizer | None, folder: Path, options: ExportOptions
) -> list[str]:
    """Write the tokenizer's file and settings; return lines about parts that are missing."""
    if tokenizer is None:
        return [_NO_TOKENIZER]
    text = tokenizer.transformers_json()
    if text is None:
        return [_OTHER_IDS.format(spec=tokenizer.spec)]
    with atomic_write(folder / _TOKENIZER) as handle:
        handle.write(text.encode())
    if options.to == TRANSFORMERS:
        end = tokenizer.pieces()[tokenizer.special["eos"]].decode()
        content = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": source.shape.position_rows,
            "clean_up_tokenization_spaces": False,
            **dict.fromkeys(("bos_token", "eos_token", "unk_token"), end),
        }
        write_json(folder / "tokenizer_config.json", content)
    return []


def _parameter_shapes(config: ModelConfig) -> dict[str, torch.Size]:
    """Return the shapes of a model's parameters by name, without allocating the parameters."""
    with torch.device("meta"):
        model = GLM(config)
    return {name: parameter.shape for name, parameter in model.named_parameters()}
