"""What a worker process knows of the workers that died at its task before it.

The pool (workers.py) counts deaths in memory, and gives each new attempt at a task the places at
which the attempts before it died. A function of many files names its place at each file, so that
the file at fault is known. Engines repeat tasks by themselves: there, nothing is known of a death.
"""

from collections.abc import Callable


class Attempt:
    """The attempt at a task that this process makes."""

    def __init__(self) -> None:
        self._deaths: tuple[str, ...] = ()
        self._send: Callable[[str], None] | None = None

    def begin(self, deaths: tuple[str, ...], send: Callable[[str], None]) -> None:
        """Begin an attempt in a worker of the pool.

        Args:
            deaths: Where the attempts before this one died.
            send: Sends a place to the pool.
        """
        self._deaths, self._send = deaths, send

    def name_place(self, place: str) -> None:
        """Name what the task works on from here on, for the case that this process dies of it."""
        if self._send:
            self._send(place)

    @property
    def deaths(self) -> tuple[str, ...]:
        """Where earlier attempts died: the place that each had named, or else the task."""
        return self._deaths


ATTEMPT = Attempt()
