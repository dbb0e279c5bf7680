"""Runs benchmarks of lm-evaluation-harness on a trained model or on a model in training.

    python -m trainer.evaluate MODEL --task hellaswag=FILE
    python -m trainer.train … --eval-task hellaswag=FILE       at every --eval-every

Under a launcher each rank answers its share; the figures are the same on any number of ranks. The
harness, which the extra `evaluate` installs, is loaded only if there is a benchmark to run.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from shards.commands.output import print_line, quantity
from shards.errors import UserError
from shards.sampling.plan import CAUSAL
from trainer.distributed import Ranks
from trainer.evaluate.command import GMASK, MASK, parse_tasks
from trainer.import_weights.loaded_model import ModelSource, find_tokenizer
from trainer.load_options import LoadOptions
from trainer.log import TASK_FIGURES
from trainer.model.loss import LossSums
from trainer.model.model import GLM
from trainer.pretraining import PretrainTask
from trainer.tasks.collate import to_device

if TYPE_CHECKING:
    from trainer.evaluate.harness import Benchmarks, Figures, ForwardEval


def open_benchmarks(
    files: Mapping[str, Path],
    source: ModelSource,
    options: LoadOptions,
    *,
    ranks: Ranks,
    length: int | None = None,
    blank: str | None = None,
) -> "Benchmarks":
    """Return the benchmarks of a model.

    Args:
        files: the files of tasks, by name.
        source: the description of the model.
        options: options that name the tokenizer if the model does not.
        ranks: the ranks that answer together.
        length: the maximum number of tokens of a row; None for the model's positions.
        blank: the blank that a glm fills; None for gmask, or for mask if the run had no task masks.

    Raises:
        UserError: there is no such task, or the file, the tokenizer or the length does not fit.
    """
    positions = source.shape.max_positions
    if length is not None and length > positions:
        raise UserError(
            f"--length {length:,}: the model has {positions:,} positions; give at most that number."
        )
    is_causal = source.objective == CAUSAL
    if blank is not None and is_causal:
        raise UserError("--blank is for a glm; this model is causal and fills no blanks.")
    tokenizer = find_tokenizer(source, options)
    from trainer.evaluate.harness import Benchmarks, load_tasks  # noqa: PLC0415 - takes seconds

    # A run that had no task masks has seen only [MASK].
    blank = blank or (GMASK if source.task_mask else MASK)
    return Benchmarks(
        tasks=load_tasks(files),
        tokenizer=tokenizer,
        length=length or positions,
        mask=None if is_causal else tokenizer.special[blank],
        ranks=ranks,
    )


def benchmarks_of(task: PretrainTask, source: ModelSource) -> "Benchmarks":
    """Return the benchmarks of a run in training, as `open_benchmarks` does."""
    files = parse_tasks("--eval-task", task.config.eval_task)
    options = LoadOptions(tokenizer=task.config.tokenizer)
    return open_benchmarks(files, source, options, ranks=task.state.ranks)


def answers_of(model: GLM) -> "ForwardEval":
    """Return a function that computes a model's losses of a batch on the model's device."""
    device = model.word_embeddings.weight.device

    def answer(batch: dict[str, Tensor]) -> LossSums:
        with torch.no_grad():
            return model.loss_sum(to_device(batch, device))

    return answer


def print_figures(benchmarks: "Benchmarks", answer: "ForwardEval") -> None:
    """Print the figures of a model's answers, accuracies with their standard errors.

    All ranks call this.
    """
    figures = benchmarks.score(answer)
    if figures is None or not benchmarks.ranks.is_first:
        return
    for name, task in benchmarks.tasks.items():
        count = len(task.eval_docs)
        print_line(f"{name}: {quantity(count, 'item')}")
        for figure, value in figures[name].items():
            error = ""
            if figure.startswith("acc") and count > 1:
                error = f" ± {math.sqrt(value * (1 - value) / (count - 1)):.4f}"
            print_line(f"{value:12.4f}  {figure}{error}")


def main_figures(figures: "Figures") -> str:
    """Return the main figures of benchmarks for the log line of a step."""
    return "  ".join(
        " ".join([name, *(f"{one} {own[one]:.4g}" for one in TASK_FIGURES if one in own)])
        for name, own in figures.items()
    )
