"""Whether a run is compiled: layers and loss are, on a GPU where all that this takes works."""

import torch

from trainer.distributed import Ranks

_AMPERE = (8, 0)
"""The first CUDA capability that Triton still supports and that computes in bf16."""
_MAX_STAGE = 2
"""Of ZeRO: at stage 3 weights are gathered module by module, within what would be compiled."""
_LONGEST = 200
"""Characters of an error that a line repeats."""


def agreed_problem(*, stage: int, ranks: Ranks) -> str | None:
    """Return why a run is not compiled, None if it is; "" where nobody expects it: on a CPU.

    All ranks call this, and compile if each of them can.

    Args:
        stage: of ZeRO.
        ranks: of the run.
    """
    problems = ranks.gather(_problem(ranks.device, stage=stage))
    return next((problem for problem in problems if problem is not None), None)


def _problem(device: torch.device, *, stage: int) -> str | None:
    if device.type != "cuda" or torch.version.cuda is None:
        return ""
    if stage > _MAX_STAGE:
        return f"at ZeRO stage {stage} weights are gathered module by module"
    major, minor = torch.cuda.get_device_capability(device)
    if (major, minor) < _AMPERE:
        return f"the GPU's compute capability is {major}.{minor}, and Triton needs 8.0"
    return _problem_of_trial(device)


def _problem_of_trial(device: torch.device) -> str | None:
    """Return what goes wrong when something small is compiled: Triton, a compiler, its headers."""
    try:
        torch.compile(torch.nn.functional.gelu)(torch.ones(64, device=device))
    except Exception as error:  # noqa: BLE001  of torch, Triton or the compiler: it is reported
        text = " ".join(str(error).split()) or type(error).__name__
        return f"torch.compile does not work here ({text[:_LONGEST]})"
    return None
