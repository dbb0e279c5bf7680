from collections.abc import Sequence

import numpy as np
import pytest
import torch

from trainer.model.sizes import ModelConfig
from trainer.tasks.collate import collate
from trainer.tasks.rows import Row, blank_row, causal_row
from trainer.tuning.model import TunedGLM
from trainer.tuning.packing import collate_packed, packed

SIZE, CLS, MASK, SOP, EOP, PAD = 128, 1, 2, 3, 4, 0


def model(*, causal: bool) -> TunedGLM:
    torch.manual_seed(0)
    shape = ModelConfig(
        num_layers=2,
        hidden_size=16,
        num_heads=2,
        vocab_size=SIZE,
        max_positions=64,
        block_positions=not causal,
        init_std=0.2,
    )
    return TunedGLM(shape).eval()


def rows(*, causal: bool) -> list[Row]:
    rng = np.random.default_rng(0)
    made = []
    for length, answer in ((20, 4), (5, 2), (7, 3), (3, 1), (12, 6)):
        text = rng.integers(5, SIZE, length).tolist()
        target = [*rng.integers(5, SIZE, answer).tolist(), EOP]
        if causal:
            made.append(causal_row([CLS, *text], target))
        else:
            made.append(blank_row([CLS, *text, MASK], mask_at=length + 1, sop=SOP, answer=target))
    return made


def losses(batch: dict[str, torch.Tensor], causal: bool) -> torch.Tensor:
    loss: torch.Tensor = model(causal=causal).outputs(batch).loss
    return loss


@pytest.mark.parametrize("causal", [False, True])
def test_a_question_loses_in_company_what_it_loses_alone(causal: bool) -> None:
    several = rows(causal=causal)
    alone = torch.cat([losses(collate([row], pad=PAD), causal) for row in several])
    batch = collate_packed(packed(several), pad=PAD)
    assert len(batch["tokens"]) < len(several)
    assert losses(batch, causal).sum().item() == pytest.approx(alone.sum().item(), rel=1e-5)
    groups = groups_of(batch, several)
    sums = [sum(alone[i].item() for i in group) for group in groups]
    assert losses(batch, causal).tolist() == pytest.approx(sums, rel=1e-5)


def groups_of(batch: dict[str, torch.Tensor], several: Sequence[Row]) -> list[list[int]]:
    """Which rows each packed row holds, by their targets."""
    groups = []
    for tokens, mask in zip(batch["targets"], batch["loss_mask"], strict=True):
        held = tokens[mask].tolist()
        groups.append([])
        for i, row in enumerate(several):
            wanted = row.targets[row.loss_mask].tolist()
            if any(held[at : at + len(wanted)] == wanted for at in range(len(held))):
                groups[-1].append(i)
    assert sorted(i for group in groups for i in group) == list(range(len(several)))
    return groups


def test_no_row_grows() -> None:
    several = rows(causal=False)
    batch = collate_packed(packed(several), pad=PAD)
    assert batch["tokens"].shape[1] == max(map(len, several))
    assert (batch["pieces"] == -1).sum() == batch["tokens"].numel() - sum(map(len, several))
