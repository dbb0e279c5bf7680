import signal

import numpy as np
import pytest
import torch

from trainer.loss import LossSums
from trainer.loss_tally import TASKS, LossTally
from trainer.ranks import Ranks
from trainer.step import StepResult, micro_batches
from trainer.stop import Stop

ALONE = Ranks(rank=0, world=1, local_rank=0, device=torch.device("cpu"))


def batch(reaches: list[int], *, width: int = 256) -> dict[str, torch.Tensor]:
    """Return a batch whose rows carry loss up to some place."""
    rows = len(reaches)
    mask = torch.arange(width) < torch.tensor(reaches)[:, None]
    tokens = torch.arange(rows * width).view(rows, width)
    return {
        "tokens": tokens,
        "targets": tokens,
        "loss_mask": mask,
        "position_ids": torch.stack([tokens, tokens], 1),
        "sep": torch.arange(rows),
        "source": torch.arange(rows) % 2,
        "task": torch.zeros(rows, dtype=torch.int8),
        "keys": torch.arange(rows),
        "piece_starts": torch.arange(99),
    }


def test_micro_batches_are_as_wide_as_their_loss() -> None:
    whole = batch([10, 65, 0, 0, 256])
    parts = micro_batches(whole, 2)
    assert [tuple(part["tokens"].shape) for part in parts] == [(2, 128), (2, 64), (1, 256)]
    assert parts[0]["position_ids"].shape == (2, 2, 128)
    assert torch.equal(torch.cat([part["sep"] for part in parts]), whole["sep"])
    assert all("keys" not in part and "piece_starts" not in part for part in parts)
    kept = sum(int(part["loss_mask"].sum()) for part in parts)
    assert kept == int(whole["loss_mask"].sum())
    for i, part in enumerate(parts):
        rows, width = part["tokens"].shape
        assert torch.equal(part["tokens"], whole["tokens"][i * 2 : i * 2 + rows, :width])


def sums(losses: list[float], correct: list[int], targets: list[int]) -> LossSums:
    return LossSums(torch.tensor(losses), torch.tensor(correct), torch.tensor(targets))


def test_tally_by_source_and_task() -> None:
    rows = {"source": torch.tensor([0, 1, 1, 2]), "task": torch.tensor([0, 0, 2, 2])}
    tally = LossTally.empty(("web", "notes", "web"))
    tally = tally.plus(rows, sums([10, 20, 30, 40], [1, 2, 3, 4], [10, 10, 10, 10]))
    assert tally.num_targets == 40
    assert tally.loss == 2.5
    assert tally.figures() == {
        "loss": 2.5,
        "accuracy": 0.25,
        "loss/spans": 1.5,
        "accuracy/spans": 0.15,
        "loss/generation": 3.5,
        "accuracy/generation": 0.35,
        "loss/web": 2.5,
        "accuracy/web": 0.25,
        "loss/notes": 2.5,
        "accuracy/notes": 0.25,
    }
    assert (tally + tally).loss == tally.loss
    assert (tally + tally).num_targets == 80
    assert np.array_equal(tally.over(ALONE).sums, tally.sums)


def test_one_source_and_task_are_not_told_twice() -> None:
    rows = {"source": torch.tensor([0]), "task": torch.tensor([len(TASKS) - 1])}
    tally = LossTally.empty(("web",)).plus(rows, sums([3], [1], [2]))
    assert tally.figures() == {"loss": 1.5, "accuracy": 0.5}


@pytest.mark.parametrize(
    ("loss", "targets", "finite"),
    [(1.0, 1, True), (float("inf"), 1, False), (float("nan"), 1, False), (0.0, 0, True)],
)
def test_a_step_without_loss_is_no_bad_one(loss: float, targets: int, finite: bool) -> None:
    rows = {"source": torch.tensor([0]), "task": torch.tensor([0])}
    tally = LossTally.empty(("web",)).plus(rows, sums([loss], [0], [targets]))
    result = StepResult(tally=tally, num_tokens=1, num_samples=1, applied=True, grad_norm=1.0)
    assert result.is_finite is finite


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_are_remembered(number: int, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(number)
    with Stop() as stop:
        assert stop.agreed(ALONE) == 0
        signal.raise_signal(number)
        signal.raise_signal(number)  # launchers send some twice
        assert stop.agreed(ALONE) == code
    assert signal.getsignal(number) is before
    assert capsys.readouterr().err.count("stopping") == 1
