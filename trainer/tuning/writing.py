"""Answers that are written by a model while it is being trained, on all ranks.

At ZeRO stage 3 every call of the model gathers weights from all ranks, and texts end after
different numbers of tokens: a rank that has finished its batch takes part in the calls of the
others until all have.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from trainer.decode.decoding import Decoding
from trainer.decode.prompt import Blank, Prompt
from trainer.decode.reader import Reader
from trainer.decode.search import fill
from trainer.decode.text import text_of
from trainer.model.cache import Cache
from trainer.model.sizes import ModelConfig
from trainer.ranks import Ranks
from trainer.step import WEIGHTS_SPLIT, Stepper
from trainer.stop import Stop
from trainer.tasks.question import Question
from trainer.tokenizer import TextTokenizer


@dataclass(frozen=True, kw_only=True)
class Scribe:
    """What writes answers."""

    stepper: Stepper
    shape: ModelConfig
    tokenizer: TextTokenizer
    decoding: Decoding
    ranks: Ranks
    stop: Stop
    """A rank that is asked to stop writes no further token."""

    def write(self, questions: Sequence[Question], *, stop: Callable[[], int]) -> list[str] | None:
        """Return the texts that answer questions, in their order, or None if stopped.

        Args:
            questions: all ranks give the same; each writes the answers to its part.
            stop: called between batches, with the same result on all ranks; nonzero: stop.

        Raises:
            AgreedError: some rank could not write, as what a model gives is no number.
        """
        own: list[str] = []
        caller = _Caller(self)
        with self.stepper.answering():
            for part in self._parts(questions):
                own.extend(self.ranks.together(partial(self._batch, part, caller)))
                if stop():
                    break
        if stop():
            return None
        return [text for share in self.ranks.gather(own) for text in share]

    def _parts(self, questions: Sequence[Question]) -> Iterator[Sequence[Question]]:
        """Yield this rank's batches, as many on every rank; the last ones may be empty."""
        size, share = self.stepper.micro_batch, -(-len(questions) // self.ranks.world)
        first = share * self.ranks.rank
        for begin in range(first, first + share, size):
            yield questions[begin : min(begin + size, first + share)]

    def _batch(self, part: Sequence[Question], caller: "_Caller") -> list[str]:
        """Return the texts that answer a batch, once all ranks have written theirs."""
        try:
            return self._texts(part, caller) if part else []
        except _StoppedError:
            return []  # all ranks stop after this batch
        finally:
            caller.wait()

    def _texts(self, questions: Sequence[Question], caller: "_Caller") -> list[str]:
        reader = Reader(caller, self.shape, self.ranks.device)
        prompts = [self._prompt(question) for question in questions]
        filled = fill(reader, prompts, self.decoding, counts_start=False)
        return [text_of(fillings[0].tokens, self.tokenizer).strip() for fillings in filled]

    def _prompt(self, question: Question) -> Prompt:
        """Return what a question's row asks, as the first token of its answer and what is before.

        As in THUDM/GLM (commit 4f61ed7, tasks/seq2seq), eop alone ends what fills a blank.
        """
        row, special = question.rows[0], self.tokenizer.special
        last = len(row) - 1
        causal = row.position_ids is None
        position = last if row.position_ids is None else int(row.position_ids[0, last])
        tokens = row.tokens.tolist()
        return Prompt(
            text="",
            parts=("", ""),
            context=tuple(tokens[:last]),
            blanks=(
                Blank(
                    mark="", token=tokens[last], position=position, block_position=int(not causal)
                ),
            ),
            ends=frozenset({special["eos" if causal else "eop"]}),
            causal=causal,
        )


class _StoppedError(Exception):
    """This rank was asked to stop; what is being written is not finished."""


class _Caller:
    """Calls a model together with the other ranks, where it must be so."""

    def __init__(self, scribe: Scribe) -> None:
        """Take the model of a scribe; all ranks call `wait` equally often."""
        self._engine = scribe.stepper.engine
        self._ranks = scribe.ranks
        self._shape = scribe.shape
        self._stop = scribe.stop
        self._together = scribe.stepper.stage == WEIGHTS_SPLIT and self._ranks.world > 1

    def __call__(self, cache: Cache) -> Tensor:
        """Return what the model gives.

        Raises:
            _StoppedError: this rank was asked to stop.
        """
        if self._stop.is_asked:
            raise _StoppedError
        if self._together:
            self._ranks.sum(torch.ones(1, dtype=torch.int64))
        logits: Tensor = self._engine(cache)
        return logits

    def wait(self) -> None:
        """Return once no rank calls the model any more; until then, call it for nothing."""
        if not self._together:
            return
        reader = Reader(self._engine, self._shape, self._ranks.device)
        nothing = Prompt(
            text="", parts=("",), context=(0,), blanks=(), ends=frozenset(), causal=True
        )
        while int(self._ranks.sum(torch.zeros(1, dtype=torch.int64))):
            reader.open([nothing])
