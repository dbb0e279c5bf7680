"""What fills a blank."""

from dataclasses import dataclass

ENDED, LIMIT, POSITIONS = "end", "length", "positions"
"""Why it ends: the model ended it; it has the most tokens asked for; the model has no more
positions."""


@dataclass(frozen=True, kw_only=True)
class Filling:
    """The tokens that fill a blank."""

    tokens: tuple[int, ...]
    """Without the one that ends them."""
    finish: str
    """Why they end."""
    score: float | None = None
    """What the best beam is worth."""


def room_and_reason(limit: int, room: int) -> tuple[int, str]:
    """Return how many tokens may fill a blank, and why it ends if they all come."""
    return (limit, LIMIT) if limit <= room else (room, POSITIONS)
