"""Reads the weights in any supported checkpoint, by our names and in our layout."""

import io
import re
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from torch import Tensor

from shards.errors import UserError
from trainer.import_weights import gpt2
from trainer.import_weights.config_json import described_folder, shape_in
from trainer.import_weights.files import STEMS, find_files, load_tensors
from trainer.import_weights.weights import WeightPart, Weights, listed
from trainer.torch_file import deepspeed_types, explain_damage, read_torch_file, weights_only


def read_weights(path: Path, *, vocab_size: int) -> Weights:
    """Return the weights in a checkpoint of this trainer, a published GLM, or a GPT-2.

    Args:
        path: a file or a folder (`files`); for a run, the folder of one of its checkpoints
            (`usable_checkpoint`).
        vocab_size: the number of rows of the model's embedding; a GPT-2 gets the rows that it
            lacks.

    Raises:
        UserError: there are no weights.
        DamageError: a file is damaged.
    """
    is_partitioned = any(path.glob("whole-*.json")) and any(path.glob("*optim_states.pt"))
    return _read_partitioned(path) if is_partitioned else _read_files(path, vocab_size=vocab_size)


def _read_partitioned(folder: Path) -> Weights:
    """Return the fp32 weights of a checkpoint of ZeRO stage 1 to 3; each rank wrote a part.

    DeepSpeed's own reader joins the parts.

    Raises:
        UserError: a file contains more than tensors and plain values, or cannot be read.
        DamageError: a file is missing, or does not fit the remaining files.
    """
    from deepspeed.utils import zero_to_fp32  # noqa: PLC0415 - reads DS_ACCELERATOR when imported

    types, printed = deepspeed_types(), io.StringIO()
    problem = f"DeepSpeed cannot join the weights in {folder}"
    try:
        with (
            explain_damage(folder, problem, ". Copy all files of the checkpoint again."),
            weights_only(types),
            redirect_stdout(printed),
            redirect_stderr(printed),
        ):
            joined: Mapping[str, WeightPart] = (
                zero_to_fp32.get_fp32_state_dict_from_zero_checkpoint(
                    str(folder.parent), folder.name, lazy_mode=True
                )
            )
    except UserError:
        for path in sorted(folder.glob("*.pt")):
            read_torch_file(path, types)  # its error names the file, if a single one is damaged
        raise
    return Weights(parts={name: [part] for name, part in joined.items()}, source=folder)


def _read_files(path: Path, *, vocab_size: int) -> Weights:
    """Return the weights in files with whole parameters, or with parts of model parallelism.

    Raises:
        UserError: there are no weights, they are quantized, or the files do not belong together.
        DamageError: a file is damaged.
    """
    ranks = find_files(path)
    if ranks[0][0].name.startswith(STEMS) and (folder := described_folder(path)):
        shape_in(folder)  # refuses a model that is computed differently, whatever --model says
    source = ranks[0][0] if len(ranks) == len(ranks[0]) == 1 else ranks[0][0].parent
    parts = []
    for shards in ranks:
        stored = {
            _bare(name): value for file in shards for name, value in load_tensors(file).items()
        }
        if gpt2.is_gpt2(stored):
            stored = gpt2.imported(stored, vocab_size=vocab_size)
        _check_type(stored, source)
        parts.append(stored)
    names = {name for part in parts for name in part}
    if lacking := sorted(name for name in names if any(name not in part for part in parts)):
        raise UserError(
            f"the files in {source} do not belong to one checkpoint: not all of them have "
            f"{listed(lacking)}."
        )
    # The parameters stay in the order of the file.
    return Weights(parts={name: [p[name] for p in parts] for name in parts[0]}, source=source)


def _bare(name: str) -> str:
    """Return the name of a parameter without the prefixes of other programs.

    DistributedDataParallel adds `module.`, and save_pretrained of THUDM/GLM's class adds `glm.`.
    """
    return re.sub(r"^((module|glm)\.)*", "", name)


def _check_type(stored: Mapping[str, Tensor], source: Path) -> None:
    """Check that all weights have a floating-point type.

    Raises:
        UserError: a weight has a different type.
    """
    for name, value in stored.items():
        if not value.is_floating_point():
            raise UserError(
                f"{source} has values of type {value.dtype} ({name}): save the weights without "
                "quantization."
            )
