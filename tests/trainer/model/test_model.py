from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
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
from trainer.model.model import GLM
from trainer.model.sizes import SIZES, ModelConfig

CASES = ("bert", "sentence", "gpt_suffix", "gpt_infill", "packed", "edges", "scalar")


@pytest.fixture(scope="module")
def figures() -> Figures:
    return Figures(EXTRACT)


@pytest.fixture(scope="module")
def shared() -> Figures:
    return Figures(SHARED / "model_tiny.npz")


@pytest.fixture
def model() -> GLM:
    return reference_model().eval()


@pytest.mark.parametrize(
    ("path", "case"),
    [
        (EXTRACT, "bert"),
        (EXTRACT, "edges"),
        *(pytest.param(SHARED / "model_tiny.npz", case, marks=needs_shared) for case in CASES),
    ],
)
def test_logits_and_losses_are_the_references(model: GLM, path: Path, case: str) -> None:
    figures = Figures(path)
    batch = figures.batch(case)
    off = logits_of(model, batch) - figures.tensor(f"case/{case}/logits")
    assert off.abs().max() < TOLERANCE
    losses = figures.tensor(f"case/{case}/losses") * batch["loss_mask"]
    assert model(batch).loss.tolist() == pytest.approx(losses.sum(1).tolist(), rel=1e-6)


@needs_shared
@pytest.mark.parametrize("case", ["bert", "gpt_suffix"])
@pytest.mark.parametrize("checkpointed", [False, True])
def test_gradients_are_the_references(
    shared: Figures, case: str, checkpointed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = reference_model(partial(GLM, checkpoint_activations=checkpointed))
    monkeypatch.setattr("trainer.model.model.CHUNK_LOGITS", 11 * model.config.vocab_size)
    sums = model.loss_sum(shared.batch(case))
    (sums.loss.sum() / sums.num_targets.sum()).backward()
    expected = shared.under(f"grad/{case}/")
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        difference = (parameter.grad - expected[name]).norm() / expected[name].norm()
        assert difference < 1e-5, name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_near(figures: Figures, model: GLM, dtype: torch.dtype) -> None:
    batch = figures.batch("bert")
    exact = model(batch)
    half = model.to(dtype)(batch)
    assert half.loss.dtype == torch.float32
    assert half.loss.tolist() == pytest.approx(exact.loss.tolist(), rel=0.02)
    logits = logits_of(model, batch)
    assert logits.dtype == dtype
    expected = figures.tensor("case/bert/logits")
    assert (logits.float() - expected).std() < 0.02 * expected.std()


def test_isolated_documents_are_as_if_alone(model: GLM) -> None:
    tokens = torch.arange(40).view(1, 40)
    places = torch.arange(40)
    position_ids = torch.stack([places, torch.zeros_like(places)]).unsqueeze(0)
    pieces = (places >= 25).long().view(1, 40)
    together = model(tokens, position_ids, sep=torch.tensor(30), pieces=pieces)
    first = model(tokens[:, :25], position_ids[..., :25], sep=torch.tensor(25))
    second = model(tokens[:, 25:], position_ids[..., 25:], sep=torch.tensor(5))
    torch.testing.assert_close(together, torch.cat([first, second], 1), rtol=0, atol=2e-5)
    batch = {"tokens": tokens, "targets": tokens, "loss_mask": tokens > 0, "pieces": pieces}
    mixed = {**batch, "pieces": torch.zeros_like(pieces)}
    assert model(batch).loss.item() != pytest.approx(model(mixed).loss.item(), rel=1e-3)


def test_a_causal_model_is_blind_to_what_follows() -> None:
    torch.manual_seed(1)
    model = GLM(replace(SHAPE, block_positions=False)).eval()
    assert not [name for name in model.state_dict() if "block_position" in name]
    tokens = torch.arange(48).view(1, 48)
    other = torch.where(torch.arange(48) < 20, tokens, 7)
    logits, changed = model(tokens, causal=True), model(other, causal=True)
    torch.testing.assert_close(logits[:, :20], changed[:, :20], rtol=0, atol=1e-6)
    assert not torch.allclose(logits[:, 20:], changed[:, 20:], atol=1e-3)


@pytest.fixture
def unmade() -> Iterator[Callable[[ModelConfig], GLM]]:
    with torch.device("meta"):
        yield GLM


@pytest.mark.parametrize("name", SIZES)
def test_num_parameters_is_what_there_is(unmade: Callable[..., GLM], name: str) -> None:
    model = unmade(ModelConfig.named(name))
    assert (
        sum(parameter.numel() for parameter in model.parameters()) == SIZES[name].num_parameters()
    )


def test_initial_values_are_spread_as_the_references() -> None:
    torch.manual_seed(3)
    model = GLM(
        ModelConfig(num_layers=2, hidden_size=256, num_heads=4, vocab_size=1024, max_positions=512)
    )
    for name, parameter in model.named_parameters():
        last = name.endswith(("attention.dense.weight", "dense_4h_to_h.weight"))
        if "layernorm.weight" in name:
            assert (parameter == 1).all(), name
        elif name.endswith("bias"):
            assert (parameter == 0).all(), name
        else:
            # 0.02, and N(0, 0.02 / √(2 · 2 layers)) for what is added to the residual stream
            spread = 0.01 if last else 0.02
            assert parameter.std().item() == pytest.approx(spread, rel=0.02), name
            assert abs(parameter.mean().item()) < 0.02 * spread + 1e-4, name


def test_biases_and_layernorms_do_not_decay(model: GLM) -> None:
    decaying, still = model.parameter_groups(0.1)
    assert (decaying["weight_decay"], still["weight_decay"]) == (0.1, 0.0)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    listed = [
        [names[id(parameter)] for parameter in group["params"]] for group in (decaying, still)
    ]
    # As the reference sorts them: 15 matrices and tables, 26 vectors.
    assert [len(group) for group in listed] == [15, 26]
    assert all(name.endswith("weight") and "layernorm" not in name for name in listed[0])
    assert sorted(listed[0] + listed[1]) == sorted(names.values())


@pytest.mark.slow
# PyTorch hides this warning of its own, but not where warnings are errors.
@pytest.mark.filterwarnings(r"ignore:The \.grad attribute of a Tensor that is not a leaf")
def test_a_compiled_transformer_gives_the_same(figures: Figures) -> None:
    plain, compiled = reference_model(), reference_model()
    compiled.transformer.compile(backend="aot_eager")
    for case in ("bert", "edges"):
        expected, sums = plain(figures.batch(case)), compiled(figures.batch(case))
        torch.testing.assert_close(sums.loss, expected.loss)
        expected.loss.sum().backward()
        sums.loss.sum().backward()
    for one, other in zip(plain.parameters(), compiled.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-5)
    assert compiled.state_dict().keys() == plain.state_dict().keys()
