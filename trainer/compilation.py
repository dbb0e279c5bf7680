"""Decides whether layers and loss are compiled and whether all kernels are deterministic."""

import logging
import os

import torch

from trainer.distributed import Ranks
from trainer.torch_file import one_line

_AMPERE = (8, 0)
"""The first CUDA capability that Triton still supports and that computes in bf16."""
_MAX_STAGE = 2
"""The highest stage of ZeRO that is compiled: at stage 3 weights are gathered within the layers."""
_log = logging.getLogger(__name__)


def use_deterministic_kernels() -> None:
    """Make PyTorch use only kernels with a fixed order of addition.

    On Hopper, attention would otherwise use cuDNN, whose gradients differ between two runs.
    """
    os.environ.setdefault(
        "CUBLAS_WORKSPACE_CONFIG", ":4096:8"
    )  # read when the first handle is made
    torch.use_deterministic_algorithms(True)


def can_compile(*, stage: int, ranks: Ranks) -> bool:
    """Return whether a run is compiled, which each rank must support; all ranks call this.

    If not, the first rank reports why, except on a CPU, where compilation is not expected.

    Args:
        stage: the stage of ZeRO.
        ranks: the ranks of the run.
    """
    problems = ranks.gather(_problem(ranks.device, stage=stage))
    problem = next((problem for problem in problems if problem is not None), None)
    if problem and ranks.is_first:
        _log.warning("the model is not compiled, which is slower: %s", problem)
    return problem is None


def _problem(device: torch.device, *, stage: int) -> str | None:
    """Return why a device cannot compile; None if it can, "" if it is not a GPU."""
    if device.type != "cuda" or torch.version.cuda is None:
        return ""
    if stage > _MAX_STAGE:
        return f"at ZeRO stage {stage} weights are gathered module by module"
    major, minor = torch.cuda.get_device_capability(device)
    if (major, minor) < _AMPERE:
        return f"the GPU's compute capability is {major}.{minor}, and Triton needs 8.0"
    return _problem_of_trial(device)


def _problem_of_trial(device: torch.device) -> str | None:
    """Compile a small function and return the error of Triton, the compiler or its headers."""
    try:
        torch.compile(torch.nn.functional.gelu)(torch.ones(64, device=device))
    except Exception as error:  # noqa: BLE001  of torch, Triton or the compiler: it is reported
        return f"torch.compile does not work here ({one_line(error)})"
    return None
