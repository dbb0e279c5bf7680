"""A worker process's attempt at an item; the attempt knows where earlier attempts died.

The pool (workers.py) counts deaths in memory, and passes to each new attempt at an item the places
where earlier attempts died. A function that processes many files reports each file as its place, so
that the file at fault is known. Engines repeat items by themselves; their workers do not learn
about earlier deaths.
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

    def report_place(self, place: str) -> None:
        """Report the part of the item that is processed next, in case this process dies there."""
        if self._send:
            self._send(place)

    @property
    def deaths(self) -> tuple[str, ...]:
        """The place where each earlier attempt died; the item, if the attempt reported no place."""
        return self._deaths


ATTEMPT = Attempt()
