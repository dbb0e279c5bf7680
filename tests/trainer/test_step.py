import torch

from trainer.step import micro_batches


def batch(reaches: list[int], *, width: int = 256) -> dict[str, torch.Tensor]:
    """Return a batch whose rows carry loss up to some token."""
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
