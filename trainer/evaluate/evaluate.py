"""What a model knows: the figures of `trainer.evaluate`."""

from dataclasses import replace

from shards.commands.shown import print_line
from trainer.config import TrainConfig
from trainer.distributed import CollectiveError, Ranks
from trainer.evaluate.benchmarks import answers_of, benchmarks_of, open_benchmarks, print_figures
from trainer.evaluate.command import EvaluateModel
from trainer.evaluate.held_out import open_held_out
from trainer.import_weights.load import broadcast_weights
from trainer.import_weights.loaded_model import load_model, resolve_model
from trainer.load_options import LoadOptions
from trainer.metrics import LossTally
from trainer.pretraining import evaluate, open_task


def evaluate_run(config: TrainConfig, ranks: Ranks) -> int:
    """Print the figures of a run's newest checkpoint."""
    task = open_task(config, ranks, load_weights=broadcast_weights, trains=False)
    asks = bool(config.eval_task)
    benchmarks = ranks.run_on_all_ranks(lambda: benchmarks_of(task)) if asks else None
    engine = task.state.engine
    tally = evaluate(engine.losses, task.data, at_once=engine.micro_batch, ranks=ranks)
    _print_tally(tally, f"step {task.state.step:,}", ranks)
    if benchmarks is not None:
        print_figures(benchmarks, engine.forward_eval)
    return 0


def evaluate_model(asked: EvaluateModel, ranks: Ranks) -> int:
    """Print what a model knows of held-out text and of tasks."""
    options: LoadOptions = asked
    if ranks.world > 1 and asked.device is None:
        options = replace(asked, device=str(ranks.device))
    source = ranks.run_on_all_ranks(lambda: resolve_model(asked.path, options))
    benchmarks = data = None
    if asked.files:
        benchmarks = ranks.run_on_all_ranks(
            lambda: open_benchmarks(
                asked.files, source, options, ranks=ranks, length=asked.length, blank=asked.blank
            )
        )
        benchmarks.batch_tokens = asked.batch_tokens
    if asked.data or benchmarks is None:
        data = open_held_out(source, asked.data, eval_samples=asked.eval_samples, ranks=ranks)
    model = ranks.run_on_all_ranks(lambda: load_model(source, options))
    answer = answers_of(model)
    step = "" if source.step is None else f", step {source.step:,}"
    if ranks.is_first:
        print_line(f"{source.path}{step}: {source.objective}")
    if data is not None:
        size = max(1, asked.batch_tokens // data.run.length)
        _print_tally(evaluate(answer, data, at_once=size, ranks=ranks), "held-out text", ranks)
    if benchmarks is not None:
        print_figures(benchmarks, answer)
    return 0


def _print_tally(tally: LossTally | None, name: str, ranks: Ranks) -> None:
    """Print the figures of held-out text.

    Raises:
        CollectiveError: there is none.
    """
    if tally is None:
        raise CollectiveError(
            "the data have no validation documents: build them with --validation 0.01."
        )
    if ranks.is_first:
        print_line(f"{name}: {tally.num_targets:,} tokens with loss")
        for figure, value in tally.figures().items():
            print_line(f"{value:10.4f}  {figure}")
