"""CPU time by stage."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """CPU seconds of this process, by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._started = time.process_time()

    @contextmanager
    def time(self, stage: str) -> Iterator[None]:
        """Add the CPU time of the block to a stage."""
        started = time.process_time()
        try:
            yield
        finally:
            spent = time.process_time() - started
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent

    def shares(self, rest: str) -> dict[str, float]:
        """Return the seconds by stage; `rest` names what no stage took since the clock was made."""
        spent = time.process_time() - self._started
        whole = {rest: spent - sum(self.seconds.values()), **self.seconds}
        return {stage: round(seconds, 4) for stage, seconds in whole.items()}
