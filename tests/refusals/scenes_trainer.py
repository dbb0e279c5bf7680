"""Folders with runs, weights and files of tasks that something is wrong with."""

import importlib
import json
import shutil
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.refusals import scenes_shards
from tests.refusals.scenes import Scene, holding, kept, together
from tests.refusals.scenes_shards import command, holding_json

SHAPE: dict[str, Any] = {
    "num_layers": 2,
    "hidden_size": 32,
    "num_heads": 4,
    "vocab_size": 384,
    "max_positions": 64,
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
}
"""Of a model that is tiny."""
ITEMS = [{"prompt": f"the {word}", "answer": f" is {word}"} for word in ("sea", "road", "rain")]
FLAGS = "--data data --batch-size 4 --log-every 1"
TUNING = "--task prompted --data items --init-from run --batch-size 2"


@cache
def _import() -> None:
    """Import in this process what takes seconds, and what the forked commands then have."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("torch", "deepspeed"):
            importlib.import_module(name)
        trainer = importlib.import_module("trainer")
        for name in trainer.__all__:
            getattr(trainer, name)


def imported(folder: Path) -> None:  # noqa: ARG001 - a scene
    """Nothing in the folder; what takes seconds to import is there."""
    _import()


def _ready(folder: Path) -> None:
    _import()
    made = kept(folder, "trained", _make_trained)
    shutil.copytree(made / "data", folder / "data")
    for name in ("model.json", "gpt2.json", "tok.model"):
        shutil.copy(made / name, folder)


def _make_trained(folder: Path) -> None:
    scenes_shards.first(folder)
    scenes_shards.corpus(folder)
    holding_json("model.json", SHAPE)(folder)
    holding_json("gpt2.json", {**SHAPE, "block_positions": False})(folder)
    lines("items/train.jsonl", ITEMS)(folder)
    for words in (
        f"train {FLAGS} --model model.json --max-steps 4 --save-every 2 --save run",
        f"train {FLAGS} --model gpt2.json --objective causal --max-steps 2 --save causal",
        "export run --to safetensors --output glm",
        "export causal --to hf --output gpt2",
        f"finetune {TUNING} --epochs 1 --save tuned",
    ):
        command(folder, f"trainer.{words}", forked=True)
    holding("reference/latest", "4")(folder)
    (folder / "reference" / "4").mkdir()
    name = "mp_rank_00_model_states.pt"
    shutil.copy(folder / "run" / "step-4" / name, folder / "reference" / "4" / name)


def lines(path: str, items: Sequence[Any]) -> Scene:
    """A file with a JSON value on each line."""
    return holding(path, "".join(f"{json.dumps(item)}\n" for item in items))


ready = _ready
"""`data`, the tokenizer, the `model.json` and `gpt2.json` of small models."""


def _part(name: str) -> Scene:
    def scene(folder: Path) -> None:
        shutil.copytree(kept(folder, "trained", _make_trained) / name, folder / name)

    return scene


trained = together(ready, _part("run"))
"""The same, and `run` with the checkpoints step-2 and step-4 of a GLM."""
causal = together(ready, _part("causal"))
"""The same, and `causal` with the checkpoint step-2 of a model without block positions."""
tuned = together(ready, _part("run"), _part("tuned"))
"""The same, and `run`, and `tuned`, which was fine-tuned from it."""
glm, gpt2, reference = (together(ready, _part(name)) for name in ("glm", "gpt2", "reference"))
"""The same, and exports: `glm` to safetensors, `gpt2` to hf; and `reference`, as GLM's own."""
