r"""The learning rate of a step: a warm-up, then a decay to a share of the peak.

    lr
    peak |     /\
         |    /    \   cosine or linear
         |   /        \
    floor|  /            \_____________
         | /
       0 +--|------------|------------- step
            warmup       decay

The rate depends only on the number of the step, so a checkpoint records no state of the schedule.
"""

import math
from dataclasses import dataclass

from shards.errors import UserError

COSINE, LINEAR, CONSTANT = "cosine", "linear", "constant"


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A schedule of the learning rate.

    Raises:
        UserError: a value is out of range.
    """

    peak: float
    """The highest rate."""
    shape: str = COSINE
    """cosine, linear or constant: how the rate falls after the warm-up."""
    warmup: int = 0
    """The number of steps until the peak."""
    decay: int = 1
    """The step, counted from the start of the run, at which the rate reaches its floor."""
    floor: float = 0.0
    """The final rate as a share of the peak."""

    def __post_init__(self) -> None:
        if self.shape not in (COSINE, LINEAR, CONSTANT):
            raise UserError(
                f"--schedule {self.shape}: it must be {COSINE}, {LINEAR} or {CONSTANT}."
            )
        if not (self.peak > 0 and math.isfinite(self.peak)):
            raise UserError(f"--lr {self.peak}: the peak learning rate must be a number above 0.")
        if not 0 <= self.floor <= 1:
            raise UserError(f"--lr-floor {self.floor}: it must be a share of the peak, 0 to 1.")
        if self.shape != CONSTANT and not 0 <= self.warmup < self.decay:
            raise UserError(
                f"the warm-up of {self.warmup:,} steps does not end before the decay does, at "
                f"step {self.decay:,}: lower --warmup, or give --decay-steps."
            )

    def rate(self, step: int) -> float:
        """Return the rate of a step; steps count from 1, so the rate of the first step is not 0.

        The values equal those of THUDM/GLM (learning_rates.py) after the same number of steps,
        except that a linear decay stops at its floor, while the reference continues to negative
        rates.
        """
        if step <= self.warmup:
            return self.peak * step / self.warmup
        if self.shape == CONSTANT:
            return self.peak
        done = min(1.0, (step - self.warmup) / (self.decay - self.warmup))
        left = 1 - done if self.shape == LINEAR else (1 + math.cos(math.pi * done)) / 2
        return self.peak * (self.floor + (1 - self.floor) * left)
