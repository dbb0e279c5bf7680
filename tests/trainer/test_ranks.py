import pytest
import torch

from tests.trainer.alone import ALONE


@pytest.mark.parametrize("dtype", [torch.int64, torch.float64])
def test_sums_are_exact(dtype: torch.dtype) -> None:
    values = torch.tensor([2**24 + 1], dtype=dtype)
    total = ALONE.sum(values)
    assert total.dtype == dtype
    assert total.tolist() == [2**24 + 1]
