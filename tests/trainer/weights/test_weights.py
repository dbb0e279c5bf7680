import json
from pathlib import Path

import pytest
import torch

from shards.errors import UserError
from tests.trainer.saved import SHAPE, random_model, save_run
from trainer.checkpoints.checkpoint import BAD_STREAK, usable_checkpoint
from trainer.weights.read import read_weights

NAME = "word_embeddings.weight"


def condemn(run: Path, step: int) -> None:
    path = run / f"step-{step}" / "whole-00000.json"
    content = json.loads(path.read_text())
    content["state"][BAD_STREAK] = 3
    path.write_text(json.dumps(content))


def test_of_a_run_the_newest_good_checkpoint_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    models = {step: random_model(SHAPE, seed=step) for step in (1, 2, 3)}
    for step, model in models.items():
        save_run(tmp_path, model, objective="glm", step=step)
    condemn(tmp_path, 3)
    (tmp_path / "latest").write_text("step-3")

    def embeddings(path: Path) -> torch.Tensor:
        checkpoint = usable_checkpoint(path)
        assert checkpoint is not None
        return read_weights(checkpoint.folder, vocab_size=SHAPE.vocab_size).read(NAME)

    assert torch.equal(embeddings(tmp_path), models[2].word_embeddings.weight)
    assert torch.equal(embeddings(tmp_path / "step-3"), models[3].word_embeddings.weight)
    file = tmp_path / "step-2" / "mp_rank_00_model_states.pt"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    assert torch.equal(embeddings(tmp_path), models[1].word_embeddings.weight)
    assert "step-1 is used" in caplog.text
    assert "step-2/mp_rank_00_model_states.pt is damaged" in caplog.text
    condemn(tmp_path, 1)
    with pytest.raises(
        UserError, match=r"(?s)none that is complete.*step-3 .*not finite.*is damaged"
    ):
        embeddings(tmp_path)
