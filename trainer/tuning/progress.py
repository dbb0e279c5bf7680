"""How far a run has come: what its checkpoints record besides weights and optimizer."""

import math
from dataclasses import dataclass, field

from trainer.tuning.best import Best


@dataclass(frozen=True, kw_only=True)
class Since:
    """Sums over the steps since the last line of the log, so that a resumed run writes the same."""

    loss: float = 0.0
    accuracy: float = 0.0
    steps: int = 0

    def plus(self, *, loss: float, accuracy: float) -> "Since":
        """Return these sums with a step added."""
        return Since(loss=self.loss + loss, accuracy=self.accuracy + accuracy, steps=self.steps + 1)

    def means(self) -> dict[str, float]:
        """Return figures of a line; NaN if there was no step."""
        if not self.steps:
            return {"loss": math.nan, "accuracy": math.nan}
        return {"loss": self.loss / self.steps, "accuracy": self.accuracy / self.steps}


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run has come."""

    evaluated: int = 0
    """The last epoch that was evaluated; 0: none."""
    bests: tuple[Best, ...] = ()
    """The best epoch, if one was evaluated."""
    bad_losses: int = 0
    """NaN and infinite losses so far."""
    since: Since = field(default_factory=Since)

    @property
    def best(self) -> Best | None:
        """The best epoch so far."""
        return self.bests[-1] if self.bests else None
