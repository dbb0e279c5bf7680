"""Guarantee: Logits and gradients are those of the reference GLM."""

from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.trainer.golden import (
    EXTRACT,
    SHARED,
    TOLERANCE,
    Figures,
    logits_of,
    needs_shared,
    reference_model,
)
from trainer.model.loss import loss_sums
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


def test_logits_are_made_again_unless_they_are_kept() -> None:
    torch.manual_seed(0)
    weights, hidden = torch.randn(7, 5, requires_grad=True), torch.randn(2, 4, 5)
    batch = {"targets": torch.arange(8).view(2, 4) % 7, "loss_mask": torch.ones(2, 4)}
    batch["loss_mask"][1, 2] = 0
    calls, gradients = [], []
    for kept, is_known in ((6, False), (7, False), (7, True)):
        rows: list[int] = []

        def project(part: Tensor, rows: list[int] = rows) -> Tensor:
            rows.append(len(part))
            return part @ weights.T

        known = (
            {"loss_indices": batch["loss_mask"].view(-1).nonzero().squeeze(1)} if is_known else {}
        )
        sums = loss_sums(hidden, project, {**batch, **known}, chunk=3, kept=kept)
        gradients.append(torch.autograd.grad(sums.loss.sum(), weights)[0])
        calls.append(sorted(rows))
    assert calls == [[1, 1, 3, 3, 3, 3], [1, 3, 3], [1, 3, 3]]
    assert all(torch.equal(gradient, gradients[0]) for gradient in gradients)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("glm-base", 109_338_624),  # the reference itself counts these
        ("glm-large", 334_688_256),
        ("glm-large-chinese", 355_659_776),
        ("glm-2b", 1_920_122_880),
        ("glm-10b", 9_880_682_496),  # the reference's formula gives this and the next number
        ("glm-10b-chinese", 9_879_633_920),
        ("gpt2-d12", 124_475_904),  # llm.c prints this number at its start
    ],
)
def test_sizes_have_as_many_parameters_as_the_original(name: str, number: int) -> None:
    with torch.device("meta"):
        model = GLM(ModelConfig.named(name))
    assert sum(parameter.numel() for parameter in model.parameters()) == number
    assert SIZES[name].num_parameters() == number


@pytest.mark.slow
# PyTorch hides this warning, which its own code causes, but not where warnings are errors.
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
