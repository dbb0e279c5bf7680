"""What a model in training makes of prompts, in the log, in TensorBoard and on the terminal.

Tokens are drawn as THUDM/GLM ships it, at a temperature of 0.9 among the 40 most probable, with the
same numbers each time, so that samples of two steps differ by what was learned. The first rank
writes, and the others wait. Where no rank has the whole model (ZeRO stage 3) all ranks write the
same: each token takes the same calls on all of them, because all take the first one's logits.

A signal is obeyed before the next token, if the first rank has got it or all write; else before the
next batch.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

import torch
from torch import Tensor

from trainer.decode.decoding import Decoding
from trainer.decode.prompt import Prompt
from trainer.decode.prompt_file import read_prompts
from trainer.decode.reader import DivergedError, Reader
from trainer.decode.search import draw_keys, fill
from trainer.decode.writer import Writer
from trainer.log import RunLog
from trainer.model.cache import Cache
from trainer.opening import Opening
from trainer.start import StartedRun
from trainer.step import WEIGHTS_SPLIT
from trainer.stop import Stop
from trainer.trained import find_tokenizer, origin_of

TEMPERATURE, TOP_K = 0.9, 40
_BATCH = 8
"""Prompts at once."""


class _StoppedError(Exception):
    """The run was asked to stop; what is being written is not finished."""


class Samples:
    """The prompts of a run, and what fills them."""

    def __init__(
        self,
        prompts: Sequence[Prompt],
        reader: Reader,
        decoding: Decoding,
        *,
        writer: Writer | None,
        is_split: bool,
    ) -> None:
        """Take over what `open_samples` found; only the first rank has a writer."""
        self._prompts = prompts
        self._reader = reader
        self._decoding = decoding
        self._writer = writer
        self._is_split = is_split

    def write(self, step: int, log: RunLog, *, stop: Callable[[], int]) -> None:
        """Fill the prompts and log them; all ranks call this.

        A model that says nothing any more is a line in the log: what becomes of its run is decided
        by its losses.

        Args:
            step: the one before.
            log: where they go.
            stop: called before each batch, with the same result on all ranks; nonzero: stop.
        """
        has_diverged = False
        for first in range(0, len(self._prompts), _BATCH):
            if stop():
                return
            if has_diverged:
                continue  # the first rank may write alone, and the others ask at every batch
            try:
                with suppress(_StoppedError):  # all ranks stop before the next batch
                    self._write_batch(step, log, first)
            except DivergedError:
                has_diverged = True
                log.say(f"step {step:,}: no samples: the model's logits are NaN or infinite")

    def _write_batch(self, step: int, log: RunLog, first: int) -> None:
        batch = self._prompts[first : first + _BATCH]
        if self._writer is not None:
            for number, found in enumerate(self._writer.write(batch, first=first), first):
                log.write_sample(step, number, prompt=found.prompt, text=found.text)
        elif self._is_split:
            keys = draw_keys(self._decoding.seed, range(first, first + len(batch)))
            fill(self._reader, batch, self._decoding, keys=keys)


def open_samples(started: StartedRun, *, stop: Stop) -> Samples | None:
    """Return the samples of a run, None if it has none; all ranks call this.

    Args:
        started: the run.
        stop: looked at before each token.

    Raises:
        AgreedError: the file of prompts, or the tokenizer of the data, cannot be used.
    """
    settings, ranks, shape = started.config.settings, started.ranks, started.data.shape
    if settings.sample_prompts is None:
        return None
    path, stepper = settings.sample_prompts, started.stepper
    is_split = stepper.stage == WEIGHTS_SPLIT
    decoding = Decoding(
        max_new_tokens=settings.sample_tokens,
        temperature=TEMPERATURE,
        top_k=TOP_K,
        seed=started.config.run.seed,
    )

    def forward(cache: Cache) -> Tensor:
        # The first rank may write alone, and then it cannot ask the others.
        if stop.agreed_exit_code(ranks) if is_split else stop.is_asked:
            raise _StoppedError
        logits = stepper.logits(cache).float()
        if is_split and ranks.world > 1:
            torch.distributed.broadcast(logits, 0)
        return logits

    reader = Reader(forward, shape, ranks.device)

    def prepare() -> tuple[Writer | None, list[Prompt]]:
        if not ranks.is_first:
            return None, []
        origin = origin_of(started)
        tokenizer = find_tokenizer(origin, Opening(tokenizer=settings.tokenizer))
        writer = Writer(reader, tokenizer, decoding, origin.reading)
        return writer, [writer.prompt(text) for text in read_prompts(path)]

    writer, prompts = ranks.together(prepare)
    prompts = ranks.gather(prompts)[0]
    return Samples(prompts, reader, decoding, writer=writer, is_split=is_split)
