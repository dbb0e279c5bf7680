"""Losses that are NaN or infinite: how many there were, and when a run gives up."""

from trainer.checkpoints.saver import Saver
from trainer.log import RunLog


class BadLosses:
    """The count of a run, the same on all ranks."""

    def __init__(self, total: int, *, most: int) -> None:
        """Go on from a count.

        Args:
            total: how many there were so far.
            most: in a row; with these the run gives up.
        """
        self.total = total
        self.streak = 0
        """In a row, up to the last step."""
        self._most = most

    @property
    def are_too_many(self) -> bool:
        """Whether the run gives up."""
        return self.streak >= self._most

    def count(self, loss: float, *, step: int, is_finite: bool, log: RunLog) -> None:
        """Count the loss of a step, and say so if it is bad."""
        if is_finite:
            self.streak = 0
            return
        self.total += 1
        self.streak += 1
        log.say(f"step {step:,}: the loss is {loss}; its batch is skipped")

    def condemn(self, saver: Saver, *, step: int) -> None:
        """Mark the checkpoint whose weights gave the last ones: none of them changed weights.

        Args:
            saver: of the run.
            step: the last one.
        """
        saver.finish(bad_streak=self.streak)
        saver.condemn(step - self.streak, bad_streak=self.streak)
