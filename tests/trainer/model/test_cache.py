import pytest
import torch
from torch import Tensor

from tests.trainer.decode.small import SHAPE, model
from trainer.model.cache import Cache

N = 20


def read(cache: Cache, tokens: Tensor, first: list[int], sizes: list[int], ahead: bool) -> Tensor:
    """Read the next tokens of each row, and return the logits of the last."""
    width = max(sizes)
    rows = [
        tokens[row, start : start + size].tolist() + [99] * (width - size)
        for row, (start, size) in enumerate(zip(first, sizes, strict=True))
    ]
    starts = torch.tensor(first)[:, None] + torch.arange(width)
    positions = torch.stack([starts.clamp(max=N), torch.zeros_like(starts)], 1)
    cache.begin(torch.tensor(rows), positions, sizes=sizes, sees_ahead=ahead)
    logits: Tensor = model()(cache)
    return logits


@pytest.fixture(scope="module")
def tokens() -> Tensor:
    return torch.randint(0, 128, (3, N), generator=torch.Generator().manual_seed(1))


def whole(tokens: Tensor, row: int, length: int, sep: int) -> Tensor:
    logits: Tensor = model()(tokens[row : row + 1, :length], sep=torch.tensor([sep]))
    return logits[0, -1]


@pytest.mark.parametrize("first", [[6, 6, 6], [6, 1, 13], [0, 4, 2]])
def test_pieces_are_read_as_the_whole(tokens: Tensor, first: list[int]) -> None:
    cache = Cache(num_layers=SHAPE.num_layers, num_rows=3)
    read(cache, tokens, [0, 0, 0], first, True)
    lengths = list(first)
    for sizes in ([1, 1, 1], [3, 1, 2], [1, 4, 1], [1, 1, 1]):
        logits = read(cache, tokens, lengths, sizes, False)
        lengths = [have + size for have, size in zip(lengths, sizes, strict=True)]
        assert cache.lengths.tolist() == lengths
        for row, length in enumerate(lengths):
            expected = whole(tokens, row, length, first[row])
            torch.testing.assert_close(logits[row], expected, atol=2e-5, rtol=1e-4)


def test_rows_are_kept_and_forgotten(tokens: Tensor) -> None:
    cache = Cache(num_layers=SHAPE.num_layers, num_rows=3)
    read(cache, tokens, [0, 0, 0], [5, 3, 8], True)
    read(cache, tokens, [5, 3, 8], [2, 4, 1], False)
    cache.select([2, 0, 0])
    assert cache.lengths.tolist() == [9, 7, 7]
    cache.cut([8, 7, 5])
    other = tokens[[2, 0, 0]]
    logits = read(cache, other, [8, 7, 5], [1, 1, 2], False)
    for row, (source, length, sep) in enumerate([(2, 9, 8), (0, 8, 5), (0, 7, 5)]):
        expected = whole(tokens, source, length, sep)
        torch.testing.assert_close(logits[row], expected, atol=2e-5, rtol=1e-4)
