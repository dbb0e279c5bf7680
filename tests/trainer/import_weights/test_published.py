from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from shards.errors import DamageError, UserError
from tests.trainer.golden import EXTRACT, SHAPE, SHARED, Figures, needs_shared
from trainer.import_weights.load import load_weights
from trainer.model.model import GLM

FILE = "mp_rank_{:02}_model_states.pt"


@pytest.fixture(scope="module")
def weights() -> dict[str, Tensor]:
    return Figures(EXTRACT).weights()


def save(path: Path, module: dict[str, Tensor], **more: Any) -> None:
    """Write a checkpoint as the reference writes it, with the states of all generators."""
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {
        "iteration": 1200,
        "module": module,
        "np_rng_state": np.random.RandomState(3).get_state(),
        "random_rng_state": (3, (1, 2, 3), None),
        "torch_rng_state": torch.zeros(8, dtype=torch.uint8),
        "rng_tracker_states": {},
    }
    torch.save({**state, **more}, path)


def assert_holds(model: GLM, weights: dict[str, Tensor]) -> None:
    state = model.state_dict()
    assert state.keys() == weights.keys()
    for name, value in weights.items():
        assert torch.equal(state[name], value), name


@pytest.mark.parametrize("tracker", [None, "latest", "latest_checkpointed_iteration.txt"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_folder(
    tmp_path: Path, weights: dict[str, Tensor], tracker: str | None, dtype: torch.dtype
) -> None:
    rounded = {name: value.to(dtype) for name, value in weights.items()}
    save((tmp_path / "1200" if tracker else tmp_path) / FILE.format(0), rounded)
    if tracker:
        (tmp_path / tracker).write_text("1200\n")
    model = GLM(SHAPE)
    load_weights(tmp_path, model)
    assert_holds(model, {name: value.float() for name, value in rounded.items()})


WORDS = "word_embeddings.weight"


def test_parts_of_a_model(tmp_path: Path, weights: dict[str, Tensor]) -> None:
    """A part alone is too small, and a part next to a whole model is from another checkpoint."""
    save(tmp_path / FILE.format(0), {**weights, WORDS: weights[WORDS][:128]})
    with pytest.raises(UserError, match=r"several model-parallel ones, give the folder"):
        load_weights(tmp_path / FILE.format(0), GLM(SHAPE))
    save(tmp_path / FILE.format(1), weights)
    with pytest.raises(
        DamageError, match=r"not belong to one checkpoint: .*\(128, 64\), \(256, 64\)"
    ):
        load_weights(tmp_path, GLM(SHAPE))


@needs_shared
@pytest.mark.parametrize("folder", ["megatron", "megatron_MP2", "megatron/1200", "megatron_fp16"])
def test_what_the_reference_wrote(folder: str) -> None:
    model, weights = GLM(SHAPE), Figures(SHARED / "model_tiny.npz").weights()
    load_weights(SHARED / "checkpoints" / folder, model)
    is_half = folder == "megatron_fp16"
    assert_holds(model, {n: w.half().float() if is_half else w for n, w in weights.items()})


def test_a_tracker_names_a_folder_beside_it(tmp_path: Path) -> None:
    (tmp_path / "latest").write_text("../900")
    with pytest.raises(UserError, match=r"latest names '\.\./900', but .* has no such folder"):
        load_weights(tmp_path, GLM(SHAPE))
