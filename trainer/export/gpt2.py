"""GPT-2 as transformers has it: `GPT2LMHeadModel.from_pretrained(FOLDER)`."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from shards.records import to_json
from shards.storage.files import write_json
from trainer.export.source import Tensors
from trainer.export.subject import Subject, name_of_dtype, write_shards
from trainer.export.tokenizer_files import write_transformers_tokenizer
from trainer.weights.gpt2_names import (
    BLOCK_POSITIONS,
    POSITIONS,
    PREFIX,
    WORDS,
    is_transposed,
    name_in_transformers,
)
from trainer.weights.hugging_face import CONFIG, TRAINING


def write_gpt2(subject: Subject, folder: Path, *, shard_bytes: int | None) -> list[str]:
    """Write a causal model for transformers and return what its user should know."""
    write_shards(_tensors(subject), folder, shard_bytes=shard_bytes)
    write_json(folder / CONFIG, _config(subject))
    end = {"bos_token_id": subject.special.get("eos"), "eos_token_id": subject.special.get("eos")}
    write_json(folder / "generation_config.json", {**end, "_from_model_config": False})
    return write_transformers_tokenizer(subject, folder)


def positions(tensors: Tensors) -> Tensor:
    """Return the table of positions of a causal model.

    A model with block positions adds the first of them to every token of plain text.
    """
    table = tensors.make(POSITIONS)
    if BLOCK_POSITIONS not in tensors.shapes:
        return table
    return (table.float() + tensors.make(BLOCK_POSITIONS)[0].float()).to(table.dtype)


def _tensors(subject: Subject) -> Tensors:
    ours = subject.tensors
    names = {
        PREFIX + name_in_transformers(name): name for name in ours.shapes if name != BLOCK_POSITIONS
    }
    shapes = {
        theirs: ours.shapes[name][::-1] if is_transposed(name) else ours.shapes[name]
        for theirs, name in names.items()
    }
    words = PREFIX + name_in_transformers(WORDS)
    shapes[words] = torch.Size([subject.vocabulary, subject.shape.hidden_size])

    def make(theirs: str) -> Tensor:
        name = names[theirs]
        if name == POSITIONS:
            return positions(ours)
        value = ours.make(name)
        if name == WORDS:
            return value[: subject.vocabulary]
        return value.t() if is_transposed(name) else value

    return ours.renamed({name: torch.Size(shape) for name, shape in shapes.items()}, make)


def _config(subject: Subject) -> dict[str, Any]:
    shape = subject.shape
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": subject.vocabulary,
        "n_positions": shape.position_rows,
        "n_embd": shape.hidden_size,
        "n_layer": shape.num_layers,
        "n_head": shape.num_heads,
        "n_inner": None,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": shape.layernorm_eps,
        "initializer_range": shape.init_std,
        "resid_pdrop": shape.hidden_dropout,
        "embd_pdrop": shape.hidden_dropout,
        "attn_pdrop": shape.attention_dropout,
        "bos_token_id": subject.special.get("eos"),
        "eos_token_id": subject.special.get("eos"),
        "tie_word_embeddings": True,
        "torch_dtype": name_of_dtype(subject.tensors.dtype),
        TRAINING: to_json(subject.training),
    }
