"""Folders with runs, weights and files of tasks that something is wrong with."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.refusals import scenes_shards
from tests.refusals.scenes import Scene, copied, holding, together
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


ready = copied("trained", _make_trained, "data", "model.json", "gpt2.json", "tok.model")
"""`data`, the tokenizer, the `model.json` and `gpt2.json` of small models."""
trained, causal, glm, gpt2, reference = (
    together(ready, copied("trained", _make_trained, name))
    for name in ("run", "causal", "glm", "gpt2", "reference")
)
"""The same, and: `run` with the checkpoints step-2 and step-4 of a GLM; `causal` with step-2 of a
model without block positions; exports, `glm` to safetensors and `gpt2` to hf; `reference`, as
GLM's own."""
tuned = together(trained, copied("trained", _make_trained, "tuned"))
"""`trained`, and `tuned`, which was fine-tuned from it."""
