"""Writes runs of untrained models: a checkpoint as one rank writes it at ZeRO stage 0."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from shards.records import to_json
from shards.storage.files import FileEntry, crc32c, file_size, write_json
from trainer.checkpoint import VERSION, FileList
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig

SHAPE = ModelConfig(
    num_layers=2,
    hidden_size=32,
    num_heads=4,
    vocab_size=384,
    max_positions=24,
    hidden_dropout=0.0,
    attention_dropout=0.0,
)
TOKENIZER = f"sentencepiece:{Path(__file__).parents[2] / 'pipelines' / 'sample' / 'sample.model'}"
GPT2_SHAPE = replace(SHAPE, block_positions=False)


def random_model(shape: ModelConfig, *, seed: int = 5) -> GLM:
    """Return a model in which all biases and LayerNorms differ from the initial values."""
    torch.manual_seed(seed)
    model = GLM(shape).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def save_run(run: Path, model: GLM, *, objective: str, step: int = 7, **identity: Any) -> Path:
    """Write a checkpoint of a run, and return the run's folder."""
    folder = run / f"step-{step}"
    folder.mkdir(parents=True)
    path = folder / "mp_rank_00_model_states.pt"
    torch.save({"module": model.state_dict(), "step": step}, path)
    file_list = FileList(
        version=VERSION,
        step=step,
        world=1,
        stage=0,
        files={path.name: FileEntry(bytes=file_size(path), crc32c=crc32c(path))},
        state={
            "identity": {
                "model": to_json(model.config),
                "objective": objective,
                "tokenizer": {},
                **identity,
            }
        },
    )
    write_json(folder / "whole-00000.json", to_json(file_list))
    return run


def causal_logits(model: GLM, tokens: torch.Tensor) -> torch.Tensor:
    logits: torch.Tensor = model(tokens, causal=True)
    return logits
