from pathlib import Path

import pytest
import torch
from torch import Tensor

from shards.errors import DamageError
from trainer.checkpoints.zero_weights import ZeroWeights, is_partitioned

torch.manual_seed(2)
GROUPS = [
    {"a": torch.randn(3, 5), "b": torch.randn(7), "c": torch.randn(2, 2)},
    {"d": torch.randn(11), "e": torch.randn(1)},
]
PADDING = [[0, 2, 0], [0, 0]]
"""Elements after each parameter that nobody uses, at stages 1 and 2."""
MOMENT = torch.randn(33)
"""Of Adam, beside the weights."""


def put(folder: Path, stage: int, world: int, *, name: str = "zero_pp_rank_{}") -> Path:
    """Write the files of a checkpoint as DeepSpeed lays them out; what is unused is NaN."""
    folder.mkdir()
    (folder / "whole-00000.json").touch()
    per_rank = [cut(stage, rank, world) for rank in range(world)]
    key = "fp32_flat_groups" if stage == 3 else "single_partition_of_fp32_groups"
    for rank, groups in enumerate(per_rank):
        state = {"zero_stage": stage, key: groups, "param_alignment_paddings": PADDING}
        state["base_optimizer_state"] = {"exp_avg": MOMENT.clone()}
        if stage == 3:
            del state["param_alignment_paddings"]
        path = folder / f"{name.format(rank)}_mp_rank_00_optim_states.pt"
        torch.save({"optimizer_state_dict": state}, path)
    shapes = [{name: value.shape for name, value in group.items()} for group in GROUPS]
    prefix = "zero_pp_rank_0_" if stage == 3 else ""
    path = folder / f"{prefix}mp_rank_00_model_states.pt"
    torch.save({"module": {}, "param_shapes": shapes}, path)
    return folder


def cut(stage: int, rank: int, world: int) -> list[Tensor]:
    if stage == 3:
        values = [value.flatten() for group in GROUPS for value in group.values()]
        parts = [padded(v, -(-len(v) // world) * world).chunk(world)[rank] for v in values]
        whole = torch.cat(parts)
        return [whole[:4], whole[4:5], whole[5:]]  # sub-groups cut parameters
    vectors = [
        torch.cat(
            [padded(v.flatten(), v.numel() + extra) for v, extra in zip(g.values(), p, strict=True)]
        )
        for g, p in zip(GROUPS, PADDING, strict=True)
    ]
    return [padded(v, -(-len(v) // world) * world).chunk(world)[rank].clone() for v in vectors]


def padded(value: Tensor, size: int) -> Tensor:
    return torch.cat([value, torch.full((size - len(value),), torch.nan)])


@pytest.mark.parametrize("world", [1, 2, 3, 11])
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_parameters_are_joined(tmp_path: Path, stage: int, world: int) -> None:
    folder = put(tmp_path / "step-1", stage, world)
    assert is_partitioned(folder)
    weights = ZeroWeights(folder)
    assert [*weights] == ["a", "b", "c", "d", "e"]
    assert len(weights) == 5
    for group in GROUPS:
        for name, value in group.items():
            assert torch.equal(weights[name], value), name


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_what_is_not_read_may_be_changed(tmp_path: Path, stage: int) -> None:
    folder = put(tmp_path / "step-1", stage, 2)
    path = folder / "zero_pp_rank_1_mp_rank_00_optim_states.pt"
    weights = cut(stage, 1, 2)[-1]
    flip(path, MOMENT)
    assert ZeroWeights(folder).shapes == {
        name: value.shape for group in GROUPS for name, value in group.items()
    }
    flip(path, weights)
    with pytest.raises(DamageError, match=r"rank_1.* is damaged: .* checksums \(CRC-32\)"):
        ZeroWeights(folder)


def flip(path: Path, value: Tensor) -> None:
    """Change the first value of a tensor in a file."""
    content, sought = path.read_bytes(), value.numpy().tobytes()
    place = content.index(sought)
    path.write_bytes(content[:place] + bytes([sought[0] ^ 1]) + content[place + 1 :])


def test_the_names_of_bf16(tmp_path: Path) -> None:
    weights = ZeroWeights(put(tmp_path / "step-1", 1, 2, name="bf16_zero_pp_rank_{}"))
    assert torch.equal(weights["d"], GROUPS[1]["d"])


def test_a_rank_that_is_missing(tmp_path: Path) -> None:
    folder = put(tmp_path / "step-1", 3, 3)
    (folder / "zero_pp_rank_1_mp_rank_00_optim_states.pt").unlink()
    with pytest.raises(DamageError, match=r"lacks what rank 1 wrote"):
        ZeroWeights(folder)


def test_files_of_two_checkpoints(tmp_path: Path) -> None:
    folder, other = put(tmp_path / "step-1", 1, 2), put(tmp_path / "other", 1, 3)
    name = "zero_pp_rank_1_mp_rank_00_optim_states.pt"
    (other / name).replace(folder / name)
    with pytest.raises(DamageError, match=r"does not hold all of c: .* one checkpoint"):
        ZeroWeights(folder)["c"]


def test_files_without_what_deepspeed_writes(tmp_path: Path) -> None:
    folder = put(tmp_path / "step-1", 1, 1)
    torch.save({"module": {}}, folder / "mp_rank_00_model_states.pt")
    with pytest.raises(DamageError, match=r"KeyError: 'param_shapes'.*bring its files back"):
        ZeroWeights(folder)


def test_without_any_file_of_the_model(tmp_path: Path) -> None:
    folder = put(tmp_path / "step-1", 1, 1)
    (folder / "mp_rank_00_model_states.pt").unlink()
    with pytest.raises(DamageError, match=r"step-1 has no \*mp_rank_00_model_states\.pt: copy"):
        ZeroWeights(folder)


def test_a_part_without_an_optimizer(tmp_path: Path) -> None:
    folder = put(tmp_path / "step-1", 1, 1)
    torch.save({"ds_version": "0"}, folder / "zero_pp_rank_0_mp_rank_00_optim_states.pt")
    with pytest.raises(DamageError, match=r"KeyError: 'optimizer_state_dict'.*bring its files"):
        ZeroWeights(folder)


def test_the_optimizer_of_bf16_names_no_stage(tmp_path: Path) -> None:
    folder = put(tmp_path / "step-1", 1, 2, name="bf16_zero_pp_rank_{}")
    for path in folder.glob("*optim_states.pt"):
        content = torch.load(path)
        del content["optimizer_state_dict"]["zero_stage"]
        torch.save(content, path)
    assert torch.equal(ZeroWeights(folder)["d"], GROUPS[1]["d"])


def test_one_whole_file_is_no_parts(tmp_path: Path) -> None:
    (tmp_path / "whole-00000.json").touch()
    (tmp_path / "mp_rank_00_model_states.pt").touch()
    assert not is_partitioned(tmp_path)
