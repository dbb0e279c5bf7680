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
    """What the best beam is worth; None: only one text was followed."""
