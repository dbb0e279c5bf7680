"""Whether a small model learns: from the built-in sample, and a single batch by heart."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from shards import Dataset
from shards.manifest import VALIDATION
from tests.trainer.runs import Running, Trial, losses
from trainer.model import model
from trainer.model.loss import LossSums, loss_sums

pytestmark = pytest.mark.slow

SMALL = {
    "num_layers": 2,
    "hidden_size": 96,
    "num_heads": 4,
    "vocab_size": 4096,
    "max_positions": 128,
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
    "init_std": 0.06,
}
LESSON = (
    *("--batch-size", "8", "--length", "64", "--max-steps", "450", "--lr", "0.003"),
    *("--eval-every", "450", "--log-every", "450"),
)


def shuffle_targets() -> None:
    """Shuffle the targets of each batch in training, but not in validation."""
    rng = torch.Generator().manual_seed(0)

    def shuffled(hidden: torch.Tensor, *args: Any, **more: Any) -> LossSums:
        if hidden.requires_grad:
            targets, mask = more["targets"].clone(), more["loss_mask"]
            wanted = targets[mask]
            targets[mask] = wanted[torch.randperm(len(wanted), generator=rng)]
            more["targets"] = targets
        return loss_sums(hidden, *args, **more)

    vars(model)["loss_sums"] = shuffled


def entropy(tokens: "np.ndarray[Any, np.dtype[Any]]") -> float:
    """Return the entropy of the token frequencies, in nats."""
    counts = np.bincount(tokens)
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


@pytest.mark.nightly
def test_it_learns_from_the_sample_but_not_from_shuffled_targets(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pipelines.wudao", "--runner=DirectRunner"]
    directory = tmp_path / "wudao"
    subprocess.run([*command, "--output", str(directory)], check=True, capture_output=True)
    (tmp_path / "model.json").write_text(json.dumps(SMALL))
    flags = ("--data", str(directory), "--model", str(tmp_path / "model.json"), *LESSON)
    trial = Trial(tmp_path, flags)
    runs: dict[str, Running] = {
        "true": trial.start("--save", tmp_path / "true"),
        "shuffled": trial.start("--save", tmp_path / "shuffled", prepare=shuffle_targets),
    }
    for running in runs.values():
        assert running.wait(900).codes() == [0], running.output()
    held_out = Dataset.open(directory).documents(split=VALIDATION)
    unigram = entropy(np.concatenate(list(held_out)).astype(np.int64))
    assert losses(tmp_path / "true", "validation")[-1] < unigram - 0.5
    assert losses(tmp_path / "shuffled", "validation")[-1] > unigram - 0.4
