"""Prints the figures of `trainer.evaluate`."""

from dataclasses import replace

from shards.commands.output import print_line
from trainer.distributed import CollectiveError, Ranks
from trainer.evaluate.benchmarks import answers_of, open_benchmarks, print_figures
from trainer.evaluate.command import Evaluate
from trainer.evaluate.held_out import open_held_out
from trainer.import_weights.loaded_model import load_model, resolve_model
from trainer.load_options import LoadOptions
from trainer.metrics import LossTally
from trainer.pretraining import evaluate


def evaluate_model(command: Evaluate, ranks: Ranks) -> int:
    """Print a model's figures on held-out text and on tasks; return the exit code."""
    options: LoadOptions = command
    if ranks.world > 1 and command.device is None:
        options = replace(command, device=str(ranks.device))
    source = ranks.run_on_all_ranks(lambda: resolve_model(command.path, options))
    benchmarks = data = None
    if command.files:
        benchmarks = ranks.run_on_all_ranks(
            lambda: open_benchmarks(
                command.files,
                source,
                options,
                ranks=ranks,
                length=command.length,
                blank=command.blank,
            )
        )
        benchmarks.batch_tokens = command.batch_tokens
    if command.data or benchmarks is None:
        data = open_held_out(source, command.data, eval_samples=command.eval_samples, ranks=ranks)
    model = ranks.run_on_all_ranks(lambda: load_model(source, options))
    answer = answers_of(model)
    step = "" if source.step is None else f", step {source.step:,}"
    if ranks.is_first:
        print_line(f"{source.path}{step}: {source.objective}")
    if data is not None:
        size = max(1, command.batch_tokens // data.plan.length)
        _print_tally(evaluate(answer, data, at_once=size, ranks=ranks), ranks)
    if benchmarks is not None:
        print_figures(benchmarks, answer)
    return 0


def _print_tally(tally: LossTally | None, ranks: Ranks) -> None:
    """Print the figures of held-out text.

    Raises:
        CollectiveError: there is no held-out text.
    """
    if tally is None:
        raise CollectiveError(
            "the data have no validation documents: build them with --validation 0.01."
        )
    if ranks.is_first:
        print_line(f"held-out text: {tally.num_targets:,} tokens with loss")
        for figure, value in tally.figures().items():
            print_line(f"{value:10.4f}  {figure}")
