"""Writes small tasks that follow a rule, and a model that is not trained yet."""

import json
import random
from pathlib import Path

import torch

from shards.records import to_json
from tests.golden.corpora import write_jsonl
from tests.trainer.saved import TOKENIZER
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig

SHAPE = ModelConfig(
    num_layers=2,
    hidden_size=64,
    num_heads=4,
    vocab_size=4096,
    max_positions=128,
    init_std=0.05,
)
_NOUNS = ("house", "river", "book", "man", "girl", "tree", "city", "song", "door", "game")
_VERBS = ("was old", "was new", "came back", "went away", "stood there", "was lost")
_PETS = ("dog", "cat")


def pets(count: int, *, seed: int) -> list[dict[str, object]]:
    """Return items in COPA's format: if about a dog, it is a cause; if about a cat, an effect."""
    rng = random.Random(seed)
    items = []
    for number in range(count):
        right, relation = rng.randrange(2), rng.randrange(2)
        noun = rng.choice(_NOUNS)
        choices = [f"A {pet} saw the {noun}." for pet in _PETS]
        if right != relation:
            choices.reverse()
        items.append(
            {
                "premise": f"The {rng.choice(_NOUNS)} {rng.choice(_VERBS)}.",
                "choice1": choices[0],
                "choice2": choices[1],
                "question": ("cause", "effect")[relation],
                "label": right,
                "idx": number,
            }
        )
    return items


def write_lesson(folder: Path, *, train: int = 48, others: int = 24) -> None:
    """Write the three files of a task, in which the test items have no labels."""
    write_jsonl(folder / "train.jsonl", pets(train, seed=1))
    write_jsonl(folder / "val.jsonl", pets(others, seed=2))
    unknown = ({k: v for k, v in item.items() if k != "label"} for item in pets(others, seed=3))
    write_jsonl(folder / "test.jsonl", unknown)


def write_model(folder: Path, shape: ModelConfig = SHAPE) -> list[str]:
    """Write a published checkpoint with random weights, and return flags that select it."""
    folder.mkdir()
    torch.manual_seed(0)
    model = GLM(shape)
    torch.save({"module": model.state_dict()}, folder / "mp_rank_00_model_states.pt")
    (folder / "model.json").write_text(json.dumps(to_json(shape)))
    named = ["--init-from", str(folder), "--model", str(folder / "model.json")]
    return [*named, "--tokenizer", TOKENIZER]
