import pytest
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask

from trainer.model.attention import additive, attend, make_mask

SEPS = torch.tensor([0, 1, 70, 192])
PIECES = torch.tensor([0] * 50 + [1] * 30 + [2] * 90 + [-1] * 22).repeat(4, 1)


def dense(sep: Tensor | None, pieces: Tensor | None, *, shape: tuple[int, int]) -> Tensor:
    mask = make_mask(sep, pieces, shape=shape, flex=False)
    assert isinstance(mask, Tensor)
    return mask


def heads(length: int = 192, *, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(4, 2, length, 16, generator=generator) for _ in range(3)]


@pytest.mark.parametrize(
    ("sep", "pieces", "picture"),
    [
        (3, None, "xxx... xxx... xxx... xxxx.. xxxxx. xxxxxx"),
        # Documents do not attend to each other.
        (
            4,
            [[0, 0, 1, 1, 0, 1, -1]],
            "xx..... xx..... ..xx... ..xx... xx..x.. ..xx.x. ......x",
        ),
    ],
)
def test_pictures(sep: int, pieces: list[list[int]] | None, picture: str) -> None:
    rows = picture.split()
    given = None if pieces is None else torch.tensor(pieces)
    mask = dense(torch.tensor([sep]), given, shape=(1, len(rows)))
    assert ["".join("x" if seen else "." for seen in row) for row in mask[0, 0].tolist()] == rows


@pytest.mark.slow  # except on a GPU, FlexAttention is traced again for each shape
@pytest.mark.filterwarnings("ignore:.*flex_attention called without torch.compile")
@pytest.mark.parametrize(
    ("sep", "pieces", "length"),
    [
        (SEPS, None, 64),
        (SEPS, PIECES, 64),
        (SEPS, PIECES, 128),
        (SEPS, PIECES, 192),
        (None, PIECES, 192),
    ],
)
def test_flex_attention_sees_the_same(
    sep: Tensor | None, pieces: Tensor | None, length: int
) -> None:
    cut = None if pieces is None else pieces[:, :length]
    blocks = make_mask(sep, cut, shape=(4, length), flex=True)
    assert isinstance(blocks, BlockMask)
    query, key, value = heads(length)
    torch.testing.assert_close(
        attend(query, key, value, mask=blocks),
        attend(query, key, value, mask=dense(sep, cut, shape=(4, length))),
    )


def test_a_mask_is_read_by_the_memory_efficient_kernel_as_it_is() -> None:
    # Conditions in aten/src/ATen/native/transformers: the type is that of the queries, the last
    # stride is 1, and all other strides are multiples of 8. Heads share a mask.
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for pieces in (None, PIECES):
            mask = additive(dense(SEPS, pieces, shape=(4, 192)), dtype)
            assert isinstance(mask, Tensor)
            assert mask.dtype == dtype
            assert mask.shape == (4, 1, 192, 192)
            assert mask.stride(-1) == 1
            assert all(stride % 8 == 0 for stride in mask.stride()[:-1])
            seen = dense(SEPS, pieces, shape=(4, 192))
            assert torch.equal(mask == 0, seen)
            assert (mask[~seen] == -torch.inf).all()
