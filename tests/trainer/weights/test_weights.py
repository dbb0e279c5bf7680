import json
from pathlib import Path

import pytest
import torch

from shards.errors import UserError
from tests.trainer.saved import SHAPE, random_model, save_run
from trainer.checkpoints.checkpoint import BAD_STREAK
from trainer.weights.weights import read_weights

NAME = "word_embeddings.weight"


def condemn(run: Path, step: int) -> None:
    path = run / f"step-{step}" / "whole-00000.json"
    content = json.loads(path.read_text())
    content["state"][BAD_STREAK] = 3
    path.write_text(json.dumps(content))


def test_of_a_run_the_newest_good_checkpoint_is_read(tmp_path: Path) -> None:
    models = {step: random_model(SHAPE, seed=step) for step in (1, 2, 3)}
    for step, model in models.items():
        save_run(tmp_path, model, objective="glm", step=step)
    condemn(tmp_path, 3)
    (tmp_path / "latest").write_text("step-3")

    def embeddings(path: Path) -> torch.Tensor:
        return read_weights(path, vocab_size=SHAPE.vocab_size).read(NAME)

    assert torch.equal(embeddings(tmp_path), models[2].word_embeddings.weight)
    assert torch.equal(embeddings(tmp_path / "step-3"), models[3].word_embeddings.weight)
    condemn(tmp_path, 2)
    condemn(tmp_path, 1)
    with pytest.raises(UserError, match=r"only checkpoints that .* losses were not finite.*step-3"):
        embeddings(tmp_path)
