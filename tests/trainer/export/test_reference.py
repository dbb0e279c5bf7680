import json
from pathlib import Path

import pytest
import torch

from tests.trainer.golden import (
    EXTRACT,
    SHAPE,
    SHARED,
    TOLERANCE,
    Figures,
    logits_of,
    needs_shared,
    reference_model,
)
from tests.trainer.saved import save_run
from tests.trainer.weights.test_published import FILE, part
from trainer.export.export import export
from trainer.export.exporting import Exporting
from trainer.model.model import GLM
from trainer.start import load_weights


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return save_run(tmp_path / "run", reference_model(), objective="glm", step=1200)


@pytest.mark.parametrize("num_ranks", [1, 2, 4])
def test_each_rank_has_the_part_that_the_reference_gives_it(
    run: Path, tmp_path: Path, num_ranks: int
) -> None:
    lines = export(
        run, Exporting(to="reference", output=tmp_path / "out", model_parallel=num_ranks)
    )
    assert "--num-layers 3 --hidden-size 64 --num-attention-heads 4" in lines[-1]
    whole = Figures(EXTRACT).weights()
    assert (tmp_path / "out" / "latest_checkpointed_iteration.txt").read_text() == "1200"
    folder = tmp_path / "out" / "1200"
    assert sorted(p.name for p in folder.iterdir()) == [FILE.format(r) for r in range(num_ranks)]
    for rank in range(num_ranks):
        content = torch.load(folder / FILE.format(rank), weights_only=True)
        assert content["iteration"] == 1200
        assert content["module"].keys() == whole.keys()
        for name, value in content["module"].items():
            assert torch.equal(value, part(name, whole[name], rank=rank, num_ranks=num_ranks)), name


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2), (4, 2)])
def test_parts_are_joined_and_split_again(
    run: Path, tmp_path: Path, before: int, after: int
) -> None:
    (tmp_path / "model.json").write_text(_json_of_shape())
    first, second = tmp_path / "first", tmp_path / "second"
    export(run, Exporting(to="reference", output=first, model_parallel=before))
    export(
        first,
        Exporting(
            to="reference", output=second, model_parallel=after, model=str(tmp_path / "model.json")
        ),
    )
    assert (second / "latest").read_text() == "release"  # which step it was no flag says
    model = GLM(SHAPE)
    assert len([*(second / "release").iterdir()]) == after
    load_weights(second, model)
    for name, value in reference_model().state_dict().items():
        assert torch.equal(model.state_dict()[name], value)


def _json_of_shape() -> str:
    return json.dumps(vars(SHAPE))


@needs_shared
@pytest.mark.parametrize(("num_ranks", "folder"), [(1, "megatron"), (2, "megatron_MP2")])
def test_the_reference_wrote_the_same(
    run: Path, tmp_path: Path, num_ranks: int, folder: str
) -> None:
    export(run, Exporting(to="reference", output=tmp_path / "out", model_parallel=num_ranks))
    for rank in range(num_ranks):
        name = f"1200/{FILE.format(rank)}"
        ours = torch.load(tmp_path / "out" / name, weights_only=True)["module"]
        theirs = torch.load(SHARED / "checkpoints" / folder / name, weights_only=False)["module"]
        assert [*ours] == [*theirs]
        assert all(torch.equal(ours[key], theirs[key]) for key in theirs)


@needs_shared
@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
def test_logits_are_the_golden_ones(run: Path, tmp_path: Path, dtype: str) -> None:
    export(run, Exporting(to="reference", output=tmp_path / "out", dtype=dtype))
    model = GLM(SHAPE).eval()
    load_weights(tmp_path / "out", model)
    figures = Figures(SHARED / "model_tiny.npz")
    difference = logits_of(model, figures.batch("bert")) - figures.tensor("case/bert/logits")
    assert difference.abs().max() < (TOLERANCE if dtype == "fp32" else 0.05)
