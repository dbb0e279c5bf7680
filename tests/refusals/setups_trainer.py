"""Setups of training runs, weights and task files, most of them damaged."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.refusals import setups_shards
from tests.refusals.setups import Setup, all_of, copy_of, run_command, with_file
from tests.refusals.setups_shards import with_json

SHAPE: dict[str, Any] = {
    "num_layers": 2,
    "hidden_size": 32,
    "num_heads": 4,
    "vocab_size": 384,
    "max_positions": 64,
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
}
"""The configuration of a tiny model."""
ITEMS = [{"prompt": f"the {word}", "answer": f" is {word}"} for word in ("sea", "road", "rain")]
FLAGS = "--data data --batch-size 4 --log-every 1"
TUNING = "--task prompted --data items --init-from run --batch-size 2"


def _make_trained(folder: Path) -> None:
    setups_shards.first(folder)
    setups_shards.corpus(folder)
    with_json("model.json", SHAPE)(folder)
    with_json("gpt2.json", {**SHAPE, "block_positions": False})(folder)
    lines("items/train.jsonl", ITEMS)(folder)
    for words in (
        f"train {FLAGS} --model model.json --max-steps 4 --save-every 2 --save run",
        f"train {FLAGS} --model gpt2.json --objective causal --max-steps 2 --save causal",
        "export run --to safetensors --output glm",
        "export causal --to hf --output gpt2",
        f"finetune {TUNING} --epochs 1 --save tuned",
    ):
        run_command(folder, f"trainer.{words}")
    with_file("reference/latest", "4")(folder)
    (folder / "reference" / "4").mkdir()
    name = "mp_rank_00_model_states.pt"
    shutil.copy(folder / "run" / "step-4" / name, folder / "reference" / "4" / name)


def lines(path: str, items: Sequence[Any]) -> Setup:
    """Return the setup that writes a file of JSON lines."""
    return with_file(path, "".join(f"{json.dumps(item)}\n" for item in items))


ready = copy_of("trained", _make_trained, "data", "model.json", "gpt2.json", "tok.model")
"""`data`, the tokenizer, and the `model.json` and `gpt2.json` of small models."""
trained, causal, glm, gpt2, reference = (
    all_of(ready, copy_of("trained", _make_trained, name))
    for name in ("run", "causal", "glm", "gpt2", "reference")
)
"""Five setups, each of which is `ready` with one more folder: `run`, with the checkpoints step-2
and step-4 of a GLM; `causal`, with step-2 of a model without block positions; the exports `glm`
(safetensors) and `gpt2` (hf); or `reference`, in the format of THUDM/GLM."""
tuned = all_of(trained, copy_of("trained", _make_trained, "tuned"))
"""`trained` with the fine-tuned model `tuned`."""
