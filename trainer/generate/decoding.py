"""The decoding options of all commands that generate text."""

import math
from dataclasses import dataclass

from shards.commands.flags import count, option, positive
from shards.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """Options for choosing tokens; by default the most probable token is taken."""

    max_new_tokens: int = option(128, group="decoding", metavar="N", type=positive)
    """Maximum number of tokens per blank."""
    min_new_tokens: int = option(0, metavar="N", type=count)
    """Minimum number of tokens per blank."""
    temperature: float | None = option(None, metavar="T", type=float)
    """Sample tokens from logits divided by T; 0: take the most probable token. Default: 1 with
    --top-k or --top-p, else 0."""
    top_k: int = option(0, metavar="K", type=count)
    """Sample from the K most probable tokens; 0: from all."""
    top_p: float = option(0.0, metavar="P", type=float)
    """Sample from the most probable tokens that together have this probability; 0: from all."""
    beams: int = option(1, metavar="N", type=positive)
    """Number of beams: follow this many texts at once, and return the most probable one."""
    no_repeat_ngram: int = option(0, metavar="N", type=count)
    """Do not repeat a sequence of N tokens within a blank; 0: allow it."""
    seed: int = option(0, metavar="N", type=int)
    """Random seed for sampling."""

    def __post_init__(self) -> None:
        if self.temperature is not None and not 0 <= self.temperature < math.inf:
            raise UserError(f"--temperature {self.temperature}: it must be 0 or more.")
        if not 0 <= self.top_p <= 1:
            raise UserError(f"--top-p {self.top_p}: it must be a probability, from 0 to 1.")
        if self.min_new_tokens > self.max_new_tokens:
            raise UserError(
                f"--min-new-tokens {self.min_new_tokens} is more than --max-new-tokens "
                f"{self.max_new_tokens}."
            )
        if self.beams > 1 and self.draws:
            raise UserError(
                f"--beams {self.beams} takes the most probable text, and --temperature, --top-k "
                "and --top-p draw one: give either --beams or these."
            )

    @property
    def effective_temperature(self) -> float:
        """The temperature; 0 if the most probable token is taken."""
        if self.temperature is not None:
            return self.temperature
        return 1.0 if self.top_k or self.top_p else 0.0

    @property
    def draws(self) -> bool:
        """Whether tokens are drawn at random."""
        return self.effective_temperature > 0
