"""Earlier deaths of workers at the same item, as a worker process knows them.

The pool (workers.py) counts deaths in memory, and gives each new attempt at an item the places at
which the attempts before it died. A function of many files names its place at each file, so that
the file at fault is known. Engines repeat items by themselves: there, nothing is known of a death.
"""

from collections.abc import Callable


class Attempt:
    """The attempt at an item that this process makes."""

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
        """Name what the item works on from here on, for the case that this process dies of it."""
        if self._send:
            self._send(place)

    @property
    def deaths(self) -> tuple[str, ...]:
        """Where earlier attempts died: the place that each had named, or else the item."""
        return self._deaths


ATTEMPT = Attempt()
