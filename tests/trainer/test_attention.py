import pytest
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask

from trainer.attention import attend, flex_runs_on, make_mask

pytestmark = pytest.mark.usefixtures("torch_dynamo")

SEPS = torch.tensor([0, 1, 70, 192])
PIECES = torch.tensor([0] * 50 + [1] * 30 + [2] * 90 + [-1] * 22).repeat(4, 1)


def dense(sep: Tensor | None, pieces: Tensor | None, *, shape: tuple[int, int]) -> Tensor:
    mask = make_mask(sep, pieces, shape=shape, flex=False)
    assert isinstance(mask, Tensor)
    return mask


def heads(length: int = 192, *, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(4, 2, length, 16, generator=generator) for _ in range(3)]


def test_the_picture() -> None:
    mask = dense(torch.tensor([3]), None, shape=(1, 6))
    assert ["".join("x" if seen else "." for seen in row) for row in mask[0, 0].tolist()] == [
        "xxx...",
        "xxx...",
        "xxx...",
        "xxxx..",
        "xxxxx.",
        "xxxxxx",
    ]


def test_documents_do_not_see_each_other() -> None:
    pieces = torch.tensor([[0, 0, 1, 1, 0, 1, -1]])
    mask = dense(torch.tensor([4]), pieces, shape=(1, 7))
    assert ["".join("x" if seen else "." for seen in row) for row in mask[0, 0].tolist()] == [
        "xx.....",
        "xx.....",
        "..xx...",
        "..xx...",
        "xx..x..",
        "..xx.x.",
        "......x",
    ]


@pytest.mark.parametrize("sep", [torch.tensor(2), torch.tensor([2]), torch.tensor([2, 2, 2])])
def test_one_sep_is_for_all(sep: Tensor) -> None:
    expected = dense(torch.tensor([2, 2, 2]), None, shape=(3, 5))
    assert torch.equal(dense(sep, None, shape=(3, 5)), expected)


def test_plain_causal_needs_no_mask() -> None:
    assert make_mask(None, None, shape=(4, 192), flex=False) is None
    query, key, value = heads()
    triangle = torch.ones(192, 192, dtype=torch.bool).tril()
    torch.testing.assert_close(
        attend(query, key, value, mask=None, dropout=0.0),
        attend(query, key, value, mask=triangle, dropout=0.0),
    )


def test_a_mask_is_the_references_multiplication() -> None:
    query, key, value = heads()
    mask = dense(SEPS, None, shape=(4, 192))
    scores = query @ key.transpose(2, 3) / 4
    scores = scores * mask + (1.0 - mask.float()) * -65504.0
    torch.testing.assert_close(
        attend(query, key, value, mask=mask, dropout=0.0), scores.softmax(-1) @ value
    )


@pytest.mark.slow  # off the GPU FlexAttention is traced again for each shape
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
        attend(query, key, value, mask=blocks, dropout=0.0),
        attend(query, key, value, mask=dense(sep, cut, shape=(4, length)), dropout=0.0),
    )


def test_blocks_that_nobody_sees_are_left_out() -> None:
    short = make_mask(torch.tensor([10]), None, shape=(1, 1024), flex=True)
    whole = make_mask(torch.tensor([1024]), None, shape=(1, 1024), flex=True)
    assert isinstance(short, BlockMask)
    assert isinstance(whole, BlockMask)
    assert short.sparsity() == pytest.approx(100 * 28 / 64)  # of 8 x 8 blocks, above the diagonal
    assert whole.sparsity() == 0


def test_flex_attention_has_no_dropout() -> None:
    blocks = make_mask(SEPS, None, shape=(4, 192), flex=True)
    with pytest.raises(ValueError, match=r"no dropout; it was asked for 0\.1"):
        attend(*heads(), mask=blocks, dropout=0.1)


def test_a_cpu_is_not_for_flex_attention() -> None:
    assert not flex_runs_on(torch.device("cpu"))
