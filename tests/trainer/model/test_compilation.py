from dataclasses import replace

import pytest
import torch

from tests.trainer.alone import ALONE
from trainer.compilation import can_compile


@pytest.mark.parametrize(
    ("device", "capability", "stage", "error", "told"),
    [
        ("cpu", (9, 0), 1, None, ""),
        ("cuda", (9, 0), 2, None, None),
        ("cuda", (8, 0), 0, None, None),
        ("cuda", (7, 5), 1, None, "the GPU's compute capability is 7.5, and Triton needs 8.0"),
        ("cuda", (9, 0), 3, None, "at ZeRO stage 3 weights are gathered module by module"),
        ("cuda", (9, 0), 1, "no C compiler", "torch.compile does not work here (no C compiler)"),
    ],
)
def test_a_gpu_on_which_all_works_compiles(
    monkeypatch: pytest.MonkeyPatch,
    device: str,
    capability: tuple[int, int],
    stage: int,
    error: str | None,
    told: str | None,
    *,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def compiled(function: object) -> object:
        if error is not None:
            raise RuntimeError(error)
        return lambda _: function

    ones = torch.ones
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    monkeypatch.setattr(torch, "compile", compiled)
    monkeypatch.setattr(torch, "ones", lambda size, **_: ones(size))
    ranks = replace(ALONE, device=torch.device(device))
    assert can_compile(stage=stage, ranks=ranks) is (told is None)
    shown = f"the model is not compiled, which is slower: {told}"
    assert caplog.messages == ([shown] if told else [])
