"""The hooks that the command `trainer.train` adds to a run: benchmarks and sample texts.

The modules of a hook are imported only if a flag enables it.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.config import TrainConfig
from trainer.distributed import Ranks, Stop
from trainer.log import TASKS, RunLog
from trainer.pretraining import PretrainTask
from trainer.pretraining import train as train_with
from trainer.trainer import Hook

if TYPE_CHECKING:
    from trainer.import_weights.loaded_model import ModelSource


def train(config: TrainConfig, ranks: Ranks) -> int:
    """Train with the hooks that the flags enable, and return the exit code."""
    load_weights = None
    if config.init_from is not None:
        from trainer.import_weights.load import broadcast_weights  # noqa: PLC0415  not in every run

        load_weights = partial(
            broadcast_weights,
            config.init_from,
            extend_positions=config.extend_positions,
            ranks=ranks,
        )
    return train_with(config, ranks, load_weights=load_weights, make_hooks=_make_hooks)


def _make_hooks(task: PretrainTask, stop: Stop) -> Sequence[Hook]:
    """Return the hooks of a run; all ranks call this.

    Raises:
        CollectiveError: a file of benchmark items, a file of prompts, or the tokenizer of the
            data cannot be used.
    """
    hooks = []
    if task.config.eval_task:
        hooks.append(_benchmarks(task))
    if task.config.sample_prompts is not None:
        from trainer.generate.samples import open_samples  # noqa: PLC0415  not in every run

        samples = open_samples(task, _source(task), task.config.sample_prompts, stop=stop)
        hooks.append(
            Hook(
                every=task.config.sample_every,
                run=lambda step, log, _stop: samples.write(step, log),
            )
        )
    return hooks


def _source(task: PretrainTask) -> "ModelSource":
    """Return the description of the model in training, for prompts and benchmarks."""
    from trainer.import_weights.loaded_model import source_of_run  # noqa: PLC0415  not in every run

    data = tuple(str(dataset.directory) for dataset in task.data.datasets)
    identity = task.state.resume_fingerprint["identity"]
    return source_of_run(identity, path=Path(data[0]), data=data, step=task.state.step)


def _benchmarks(task: PretrainTask) -> Hook:
    from trainer.evaluate.benchmarks import benchmarks_of, main_figures  # noqa: PLC0415  not in every run

    state = task.state
    source = _source(task)
    benchmarks = state.ranks.run_on_all_ranks(lambda: benchmarks_of(task, source))

    def run(step: int, log: RunLog, stop: Stop) -> None:
        figures = benchmarks.score(
            partial(state.engine.forward_eval, eager=True), stop=stop.exit_code
        )
        if figures:
            line = f"step {step:,}/{state.steps:,}  {TASKS}  {main_figures(figures)}"
            flat = {f"{one}/{name}": x for name, own in figures.items() for one, x in own.items()}
            log.write(TASKS, step, flat, samples=task.position(step), line=line)

    return Hook(every=task.config.eval_every, run=run)
