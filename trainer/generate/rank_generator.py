"""Generates text with a model in training, on all ranks.

Each rank fills its share of the prompts. At ZeRO stage 3 every call of the model gathers weights
from all ranks, but texts have different lengths. So a rank that has finished its batch makes dummy
calls until all ranks have finished their batches.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from trainer.deepspeed import ZERO_3
from trainer.distributed import Ranks, Stop
from trainer.engine import DeepSpeedEngine
from trainer.generate.decoder import CachedDecoder
from trainer.generate.decoding import Decoding
from trainer.generate.prompt import Prompt
from trainer.generate.search import Completion, fill
from trainer.model.model import CachedInput
from trainer.model.sizes import ModelConfig

_NOTHING = Prompt(context=(0,), blanks=(), ends=frozenset(), causal=True)
"""The prompt of a dummy call."""


class _StoppedError(Exception):
    """This rank has received a signal to stop, and leaves its texts unfinished."""


@dataclass(frozen=True, kw_only=True)
class RankGenerator:
    """Fills the blanks of prompts on all ranks."""

    engine: DeepSpeedEngine
    shape: ModelConfig
    decoding: Decoding
    ranks: Ranks
    stop: Stop
    """The signals to stop; a rank that has received one generates no further token."""
    batch_size: int
    """The number of prompts that a rank fills at once, the same on all ranks."""

    def fill(
        self, num_prompts: int, prompt_of: Callable[[int], Prompt]
    ) -> list[list[Completion]] | None:
        """Return the completions of prompts, in their order; None if a signal to stop arrived.

        Args:
            num_prompts: the number of prompts, the same on all ranks.
            prompt_of: a function that makes the prompt with a given number.

        Raises:
            CollectiveError: logits on some rank are NaN or infinite.
        """
        own: list[list[Completion]] = []
        share = -(-num_prompts // self.ranks.world)
        begin = share * self.ranks.rank
        with self.engine.eval_mode(eager=True):
            for first in range(begin, begin + share, self.batch_size):
                if self.stop.exit_code():
                    return None
                numbers = range(first, min(first + self.batch_size, begin + share, num_prompts))
                own += self.ranks.run_on_all_ranks(partial(self._batch, numbers, prompt_of))
        if self.stop.exit_code():
            return None
        return [one for part in self.ranks.gather(own) for one in part]

    def _batch(self, numbers: range, prompt_of: Callable[[int], Prompt]) -> list[list[Completion]]:
        """Return the completions of a batch once all ranks have finished their batches."""
        decoder = CachedDecoder(self._call, self.shape, self.ranks.device)
        prompts = [prompt_of(number) for number in numbers]
        try:
            return fill(decoder, prompts, self.decoding, first=numbers.start) if prompts else []
        except _StoppedError:
            return []  # all ranks stop after this batch
        finally:
            self._join_remaining_calls()

    @property
    def _is_split(self) -> bool:
        return self.engine.stage == ZERO_3 and self.ranks.world > 1

    def _call(self, new: CachedInput) -> Tensor:
        """Return the model's logits; at ZeRO stage 3 all ranks make this call together.

        Raises:
            _StoppedError: this rank has received a signal to stop.
        """
        if self.stop.is_requested:
            raise _StoppedError
        if self._is_split:
            self.ranks.sum(torch.ones(1, dtype=torch.int64))
        logits: Tensor = self.engine.wrapped(new)
        return logits

    def _join_remaining_calls(self) -> None:
        """Make dummy calls of the model until all ranks have finished."""
        decoder = CachedDecoder(self.engine.wrapped, self.shape, self.ranks.device)
        while self._is_split and int(self.ranks.sum(torch.zeros(1, dtype=torch.int64))):
            decoder.prefill([_NOTHING])
