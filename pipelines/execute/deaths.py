"""A worker process's knowledge of earlier worker deaths at the same item.

The pool (workers.py) counts deaths in memory, and passes each new attempt at an item the places
where earlier attempts died. A function that processes many files names each file as its place, so
that the file at fault is known. Engines repeat items by themselves, and there a worker does not
learn about deaths.
"""

from collections.abc import Callable


class Attempt:
    """This process's attempt at an item."""

    def __init__(self) -> None:
        self._deaths: tuple[str, ...] = ()
        self._send: Callable[[str], None] | None = None

    def begin(self, deaths: tuple[str, ...], send: Callable[[str], None]) -> None:
        """Begin an attempt in a worker of the pool.

        Args:
            deaths: The places where earlier attempts died.
            send: The function that sends a place to the pool.
        """
        self._deaths, self._send = deaths, send

    def name_place(self, place: str) -> None:
        """Report the place that the item works on from now on, in case this process dies there."""
        if self._send:
            self._send(place)

    @property
    def deaths(self) -> tuple[str, ...]:
        """The places where earlier attempts died: the place that each named, or the item."""
        return self._deaths


ATTEMPT = Attempt()
