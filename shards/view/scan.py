"""A search that stops after a while and says where to go on: nothing is indexed beforehand."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Hit = TypeVar("Hit")


class Budget:
    """What a page may spend on searching."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the seconds, from now on."""
        self._clock = clock
        self._end = clock() + seconds

    @property
    def is_spent(self) -> bool:
        """Whether the time is over."""
        return self._clock() >= self._end


@dataclass(kw_only=True)
class Found(Generic[Hit]):
    """What a search has found so far."""

    start: int
    """The row where it began, counted over everything that is searched."""
    total: int
    """Rows of everything."""
    at: int
    """The first row that was not looked at; the total if it came to the end."""
    hits: list[Hit] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether everything from the start on was looked at."""
        return self.at >= self.total
