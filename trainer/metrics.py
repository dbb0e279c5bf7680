"""Measures a run: loss by source and objective, speed, and model FLOPs utilization (MFU)."""

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from trainer.distributed import DTYPES, Ranks
from trainer.model.loss import LossSums

OBJECTIVES = ("spans", "sentences", "generation", "causal")
"""Objectives by number: the values of `blanks.objective.Objective`, then next-token prediction."""
CAUSAL_OBJECTIVE = OBJECTIVES.index("causal")

_LOSS, _CORRECT, _TARGETS = range(3)


@dataclass(frozen=True)
class LossTally:
    """Sums of losses over samples, by source and objective; tallies can be added."""

    sources: tuple[str, ...]
    """The names of the sources; the figures of equal names are merged."""
    sums: NDArray[np.float64]
    """[sources, objectives, 3]: loss in nats, correct tokens, and tokens with loss."""

    @classmethod
    def empty(cls, sources: Sequence[str]) -> "LossTally":
        """Return a tally that has no samples."""
        return cls(tuple(sources), np.zeros((len(sources), len(OBJECTIVES), 3)))

    def with_sources(self, sources: Sequence[str]) -> "LossTally":
        """Return this tally for a longer list of sources, which begins with its own sources."""
        wider = np.zeros((len(sources), *self.sums.shape[1:]))
        wider[: len(self.sums)] = self.sums
        return LossTally(tuple(sources), wider)

    def plus(self, batch: Mapping[str, torch.Tensor], sums: LossSums) -> "LossTally":
        """Return this tally with the samples of a batch added; this waits for the device."""
        columns = torch.stack([column.detach().double() for column in sums]).cpu().numpy()
        source = batch["source"].cpu().numpy().astype(np.int64)
        objective = batch["objective"].cpu().numpy().astype(np.int64)
        cells = source * len(OBJECTIVES) + objective
        size = len(self.sources) * len(OBJECTIVES)
        added = np.stack([np.bincount(cells, column, minlength=size) for column in columns], 1)
        return LossTally(self.sources, self.sums + added.reshape(self.sums.shape))

    def __add__(self, other: "LossTally") -> "LossTally":
        return LossTally(self.sources, self.sums + other.sums)

    def summed_over(self, ranks: Ranks) -> "LossTally":
        """Return the sum of this tally over all ranks, which all call this."""
        return LossTally(self.sources, ranks.sum(torch.from_numpy(self.sums)).numpy())

    @property
    def num_targets(self) -> int:
        """The number of tokens with loss."""
        return int(self.sums[..., _TARGETS].sum())

    @property
    def loss(self) -> float:
        """The mean loss in nats per token; 0 if there are no tokens."""
        return float(self.sums[..., _LOSS].sum() / max(1, self.num_targets))

    def figures(self) -> dict[str, float]:
        """Return loss and accuracy, in total and by source and objective if there are several."""
        named_sums = {"": self.sums}
        by_objective = {f"/{name}": self.sums[:, [i]] for i, name in enumerate(OBJECTIVES)}
        by_source = {
            f"/{name}": self.sums[[i for i, other in enumerate(self.sources) if other == name]]
            for name in self.sources
        }
        for groups in (by_objective, by_source):
            nonempty = {name: sums for name, sums in groups.items() if sums[..., _TARGETS].any()}
            if len(nonempty) > 1:
                named_sums |= nonempty
        return {
            f"{figure}{name}": value
            for name, sums in named_sums.items()
            for figure, value in _figures(sums).items()
        }


def _figures(sums: NDArray[np.float64]) -> dict[str, float]:
    loss, correct, targets = sums.reshape(-1, 3).sum(axis=0).tolist()
    if not targets:
        return {"loss": float("nan"), "accuracy": float("nan")}
    return {"loss": loss / targets, "accuracy": correct / targets}


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """The result of a step, the same on every rank."""

    loss: float
    """The loss of the global batch in nats; 0 if no token has a loss."""
    num_tokens: int
    """The number of tokens of the global batch, not counting padding."""
    num_samples: int
    applied: bool
    """Whether the weights were updated; they are not if the loss or a gradient was not finite."""
    grad_norm: float
    """The norm of the gradients before clipping."""
    flops: float = 0.0
    waited: float = 0.0
    """The seconds that the step waited for its batch."""

    @property
    def is_finite(self) -> bool:
        """Whether the loss is finite."""
        return math.isfinite(self.loss)


class SpeedMeter:
    """Measures speed, and the share of time spent waiting for data, since the last reading."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Set all counts and the clock back to 0."""
        self._since = time.perf_counter()
        self.steps = self._tokens = self._samples = 0
        self._flops = self._waited = 0.0

    def add(self, result: StepResult) -> None:
        """Count a step."""
        self.steps += 1
        self._tokens += result.num_tokens
        self._samples += result.num_samples
        self._flops += result.flops
        self._waited += result.waited

    def pause(self, seconds: float) -> None:
        """Exclude seconds that were not spent on training."""
        self._since += seconds

    def read(self, *, peak_flops: float | None) -> dict[str, float]:
        """Return the figures since the last call, with the MFU if `peak_flops` is known."""
        seconds = max(time.perf_counter() - self._since, 1e-9)
        figures = {
            "ms_per_step": 1000 * seconds / max(1, self.steps),
            "tokens_per_second": self._tokens / seconds,
            "samples_per_second": self._samples / seconds,
            "waiting": self._waited / seconds,
        }
        if peak_flops and self._flops:
            figures["mfu"] = self._flops / seconds / peak_flops
        self.restart()
        return figures


_HALF = (torch.float16, torch.bfloat16)
_FP16 = (torch.float16,)

# TFLOP/s of dense matrix products accumulated in fp32, from the manufacturer's data sheet (without
# sparsity). The first pattern that matches the device's name counts.
_PEAKS: tuple[tuple[str, float, tuple[torch.dtype, ...]], ...] = (
    (r"\bB200\b", 2250, _HALF),  # NVIDIA Blackwell architecture brief
    (r"\bGH200\b|\bH200\b", 989.4, _HALF),  # NVIDIA H200 data sheet
    (r"\bH100 PCIe\b", 756, _HALF),  # NVIDIA H100 data sheet, its three forms
    (r"\bH100 NVL\b", 835, _HALF),
    (r"\bH[18]00\b", 989.4, _HALF),
    (r"\bA[18]00\b", 312, _HALF),  # NVIDIA A100 data sheet
    (r"\bL40S\b", 362, _HALF),  # NVIDIA L40S data sheet
    (r"\bL4\b", 121, _HALF),  # NVIDIA L4 data sheet
    (r"\bA40\b", 149.7, _HALF),  # NVIDIA A40 data sheet
    (r"\bA10\b", 125, _HALF),  # NVIDIA A10 data sheet
    (r"\bV100-PCIE\b", 112, _FP16),  # NVIDIA V100 data sheet
    (r"\bV100S\b", 130, _FP16),
    (r"\bV100\b", 125, _FP16),
    (r"\bT4\b", 65, _FP16),  # NVIDIA T4 data sheet
    (r"\bRTX 3090(?! Ti)\b", 71, _HALF),  # NVIDIA GA102 whitepaper, appendix A
    (r"\bRTX 4090(?! (D|Laptop))\b", 165.2, _HALF),  # NVIDIA Ada whitepaper, appendix A
    (r"Ascend910B2$", 376, _HALF),  # eight in an Atlas 800T A2: 3.0 PFLOP/s, or
    (r"Ascend910B3$", 313, _HALF),  # 2.5 PFLOP/s with these
    (r"Ascend910(A|Pro[AB])?$", 256, _FP16),  # Huawei at Hot Chips 31
)


def peak_flops(device_name: str, dtype: torch.dtype) -> float | None:
    """Return the peak FLOP/s of a device in its manufacturer's data sheet; None if it is not known.

    Args:
        device_name: the name that `torch.cuda.get_device_name()` or its counterpart returns.
        dtype: the type of the factors. The result is None for types that the device's matrix units
            do not support, and for fp32, whose products may or may not use TF32.
    """
    for pattern, tera, dtypes in _PEAKS:
        if re.search(pattern, device_name):
            return tera * 1e12 if dtype in dtypes else None
    return None


def peak_flops_of(ranks: Ranks, precision: str) -> float | None:
    """Return the peak FLOP/s of the devices of all ranks together; None if it is not known."""
    if ranks.device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(ranks.device)
    peak = peak_flops(name, DTYPES[precision])
    return None if peak is None else peak * ranks.world
