"""How what a model writes is chosen: the options of every command that lets one write."""

import math
from dataclasses import dataclass

from shards.commands.flags import count, option, positive
from shards.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How tokens are chosen; by default the most probable one."""

    max_new_tokens: int = option(128, group="how tokens are chosen", metavar="N", type=positive)
    """Maximum number of tokens per blank."""
    min_new_tokens: int = option(0, metavar="N", type=count)
    """Minimum number of tokens per blank."""
    temperature: float | None = option(None, metavar="T", type=float)
    """Draw tokens, from logits divided by this; 0 takes the most probable one. Default: 1 with
    --top-k or --top-p, else 0."""
    top_k: int = option(0, metavar="K", type=count)
    """Draw among this many most probable tokens; 0: all."""
    top_p: float = option(0.0, metavar="P", type=float)
    """Draw among the most probable tokens that have this probability together; 0: all."""
    beams: int = option(1, metavar="N", type=positive)
    """Follow this many texts at once, and take the most probable."""
    no_repeat_ngram: int = option(0, metavar="N", type=count)
    """Within a blank, no sequence of this many tokens twice."""
    seed: int = option(0, metavar="N", type=int)
    """Random seed of the draws."""

    def __post_init__(self) -> None:
        if self.temperature is not None and not 0 <= self.temperature < math.inf:
            raise UserError(f"--temperature {self.temperature}: a number from 0 on.")
        if not 0 <= self.top_p <= 1:
            raise UserError(f"--top-p {self.top_p}: a probability, from 0 to 1.")
        if self.min_new_tokens > self.max_new_tokens:
            raise UserError(
                f"--min-new-tokens {self.min_new_tokens} is more than --max-new-tokens "
                f"{self.max_new_tokens}."
            )
        if self.beams > 1 and self.draws:
            raise UserError(
                f"--beams {self.beams} takes the most probable text, and --temperature, --top-k "
                "and --top-p say how to draw one: give the one or the others."
            )

    @property
    def effective_temperature(self) -> float:
        """The temperature; 0: the most probable token is taken."""
        if self.temperature is not None:
            return self.temperature
        return 1.0 if self.top_k or self.top_p else 0.0

    @property
    def draws(self) -> bool:
        """Whether chance decides anything."""
        return self.effective_temperature > 0
