"""Validation: the same windows with the same blanks each time, each counted once."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from shards.progress import counted
from shards.shown import print_line
from trainer.benchmarks import answers_of, benchmarks_of, open_benchmarks, print_figures
from trainer.config import Config
from trainer.data import RunData, source_names
from trainer.held_out import held_out_run, open_held_out
from trainer.loader import Tensors
from trainer.loss_tally import LossTally
from trainer.model.loss import LossSums
from trainer.published import brought
from trainer.ranks import AgreedError, Ranks
from trainer.start import start
from trainer.step import micro_batches
from trainer.trained import find_origin, load_model

if TYPE_CHECKING:
    from trainer.evaluate.command import EvaluateModel


def evaluate(
    losses: Callable[[Tensors], LossSums],
    data: RunData,
    *,
    at_once: int,
    ranks: Ranks,
    stop: Callable[[], int] = lambda: 0,
) -> LossTally | None:
    """Return the tally of the validation windows, None without any, or if stopped.

    Args:
        losses: what the model gives of windows, without gradients.
        data: holds the windows.
        at_once: windows that this rank computes at once.
        ranks: all of them call this; each computes its part.
        stop: called between batches, with the same result on all ranks; nonzero: return None.
    """
    if data.held_out is None:
        return None
    tally = LossTally.empty(source_names(data.held_out.streams))
    size = ranks.at_once(at_once)
    batches = data.validation(size, ranks)
    if ranks.is_first:
        batches = counted("validation", batches, total=math.ceil(len(data.held_out) / size))
    for batch in batches:
        for part in micro_batches(batch, at_once):
            tally = tally.plus(part, losses(part))
        if stop():
            return None
    return tally.summed_over(ranks)


def evaluate_checkpoint(config: Config, ranks: Ranks) -> int:
    """Print the figures of a checkpoint and return the exit code.

    Raises:
        UserError: the data have no validation documents.
    """
    started = start(config, ranks)
    benchmarks = ranks.together(lambda: benchmarks_of(started))
    stepper = started.stepper
    tally = evaluate(stepper.losses, started.data, at_once=stepper.micro_batch, ranks=ranks)
    _print_tally(tally, f"step {started.step:,}", ranks)
    print_figures(benchmarks, stepper.answer, ranks)
    return 0


def evaluate_model(asked: "EvaluateModel", ranks: Ranks) -> int:
    """Print what a model knows of held-out text and of tasks, and return the exit code.

    Raises:
        UserError: the model, its tokenizer, the data or a task's file cannot be used.
    """
    if ranks.world > 1 and asked.device is None:
        asked = replace(asked, device=str(ranks.device))
    origin = ranks.together(lambda: find_origin(asked.path, asked))
    benchmarks = ranks.together(
        lambda: open_benchmarks(asked.files, origin, asked, length=asked.length, blank=asked.blank)
    )
    data = None
    if asked.data or benchmarks is None:
        run = brought(ranks.together(lambda: held_out_run(origin, asked.data)), ranks)
        data = ranks.together(lambda: open_held_out(origin, run, eval_samples=asked.eval_samples))
    model = ranks.together(lambda: load_model(origin, asked))
    step = "" if origin.step is None else f", step {origin.step:,}"
    if ranks.is_first:
        print_line(f"{origin.path}{step}: {origin.objective}")
    if data is not None:
        size = max(1, asked.batch_tokens // data.run.length)
        tally = evaluate(answers_of(model), data, at_once=size, ranks=ranks)
        _print_tally(tally, "held-out text", ranks)
    batch_tokens = asked.batch_tokens
    print_figures(benchmarks, answers_of(model), ranks, batch_tokens=batch_tokens)
    return 0


def _print_tally(tally: LossTally | None, name: str, ranks: Ranks) -> None:
    if tally is None:
        raise AgreedError(
            "the data have no validation documents: build them with --validation 0.01."
        )
    if ranks.is_first:
        print_line(f"{name}: {tally.num_targets:,} tokens with loss")
        for figure, value in tally.figures().items():
            print_line(f"{value:10.4f}  {figure}")
