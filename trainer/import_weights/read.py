"""The weights in any checkpoint that the trainer knows, by our names and in our layout.

GPT-2 gives all its tokens logits far below 0. The rows that its embedding lacks get the mean of the
others: rows near 0, whose logit is 0, would take nearly all of the probability.
"""

import io
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import torch
from torch import Tensor

from shards.errors import DamageError, UserError
from trainer.import_weights import gpt2
from trainer.import_weights.config_json import described_folder, shape_in
from trainer.import_weights.files import STEMS, find_files, load
from trainer.import_weights.glm import bare_name
from trainer.import_weights.weights import Part, Weights, listed
from trainer.model.model import parameter_shapes
from trainer.model.sizes import VOCABULARY_MULTIPLE, ModelConfig
from trainer.torch_file import deepspeed_types, explain_damage, read, weights_only


def read_weights(path: Path, *, vocab_size: int) -> Weights:
    """Return the weights in a checkpoint of this trainer, a published GLM, or a GPT-2.

    Args:
        path: a file or a folder (`files`); of a run the folder of a checkpoint
            (`usable_checkpoint`).
        vocab_size: rows of the model's embedding; those that a GPT-2 lacks are filled up.

    Raises:
        UserError: there are none.
        DamageError: a file is damaged.
    """
    is_partitioned = any(path.glob("whole-*.json")) and any(path.glob("*optim_states.pt"))
    return _read_partitioned(path) if is_partitioned else _read_files(path, vocab_size=vocab_size)


def _read_partitioned(folder: Path) -> Weights:
    """Return the weights in fp32 of which each rank wrote a part, at ZeRO stage 1, 2 or 3.

    DeepSpeed's own reader joins them.

    Raises:
        UserError: a file holds more than tensors and plain values, or cannot be read.
        DamageError: a file is missing, or does not fit the others.
    """
    from deepspeed.utils import zero_to_fp32  # noqa: PLC0415 - reads DS_ACCELERATOR when imported

    types, told = deepspeed_types(), io.StringIO()
    problem = f"DeepSpeed cannot join the weights in {folder}"
    try:
        with (
            explain_damage(folder, problem, ". Copy all files of the checkpoint again."),
            weights_only(types),
            redirect_stdout(told),
            redirect_stderr(told),
        ):
            joined: Mapping[str, Part] = zero_to_fp32.get_fp32_state_dict_from_zero_checkpoint(
                str(folder.parent), folder.name, lazy_mode=True
            )
    except UserError:
        for path in sorted(folder.glob("*.pt")):
            read(path, types)  # which says what file it is, if it is one alone
        raise
    return Weights(parts={name: [part] for name, part in joined.items()}, source=folder)


def _read_files(path: Path, *, vocab_size: int) -> Weights:
    """Return the weights in files that hold whole parameters, or parts of model parallelism.

    Raises:
        UserError: there are none, or they are quantized.
        DamageError: a file cannot be read, or the files do not belong to one checkpoint.
    """
    ranks = find_files(path)
    if ranks[0][0].name.startswith(STEMS) and (folder := described_folder(path)):
        shape_in(folder)  # refuses a model that is computed in another way, whatever --model says
    source = ranks[0][0] if len(ranks) == len(ranks[0]) == 1 else ranks[0][0].parent
    parts = []
    for shards in ranks:
        stored = {bare_name(name): value for file in shards for name, value in load(file).items()}
        if gpt2.is_gpt2(stored):
            stored = _own_layout(stored, source, vocab_size=vocab_size)
        _check_type(stored, source)
        parts.append(stored)
    names = {name for part in parts for name in part}
    if lacking := sorted(name for name in names if any(name not in part for part in parts)):
        raise UserError(
            f"the files in {source} do not belong to one checkpoint: not all of them have "
            f"{listed(lacking)}."
        )
    # In the order of the file.
    return Weights(parts={name: [p[name] for p in parts] for name in parts[0]}, source=source)


def _own_layout(
    stored: Mapping[str, Tensor], source: Path, *, vocab_size: int
) -> dict[str, Tensor]:
    """Return the weights of a GPT-2 by our names and in our layout.

    Raises:
        DamageError: some are missing.
    """
    stored = {name.removeprefix(gpt2.PREFIX): value for name, value in stored.items()}
    own = _names(gpt2.num_layers(stored))
    lacking = [name for name in own.values() if name not in stored]
    if lacking:
        shown = listed([f"{gpt2.PREFIX}{name}" for name in lacking])
        raise DamageError(f"{source} has no {shown}, which a GPT-2 has: copy its files again.")
    found = {}
    for name, theirs in own.items():
        value = stored[theirs]
        if gpt2.is_transposed(name) and value.dim() == 2:  # noqa: PLR2004
            value = value.t()
        found[name] = _filled(value, vocab_size) if name == gpt2.WORDS else value
    return found


def _names(layers: int) -> dict[str, str]:
    """Return the names of a GPT-2's parameters as transformers has them, by ours."""
    shape = ModelConfig(
        num_layers=layers,
        hidden_size=1,
        num_heads=1,
        vocab_size=VOCABULARY_MULTIPLE,
        max_positions=1,
        block_positions=False,
    )
    return {name: gpt2.name_in_transformers(name) for name in parameter_shapes(shape)}


def _check_type(stored: Mapping[str, Tensor], source: Path) -> None:
    """Refuse weights that are not of floating point."""
    for name, value in stored.items():
        if not value.is_floating_point():
            raise UserError(
                f"{source} has values of type {value.dtype} ({name}): save the weights without "
                "quantization."
            )


def _filled(words: Tensor, vocab_size: int) -> Tensor:
    """Return an embedding with the rows of padding that it lacks; of another size, as it is."""
    missing = vocab_size - len(words) if words.dim() else 0
    if not 0 < missing < VOCABULARY_MULTIPLE:
        return words
    mean = words.float().mean(dim=0).to(words.dtype)
    return torch.cat([words, mean.expand(missing, -1)])
