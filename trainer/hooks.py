"""What the command of training lets a run do with its model: benchmarks, and samples of text.

They are loaded where a flag asks for them only.
"""

from collections.abc import Sequence

from trainer.config import Config
from trainer.distributed import Ranks, Stop
from trainer.import_weights.load import broadcast_weights
from trainer.log import TASKS, RunLog
from trainer.pretraining import PretrainState
from trainer.pretraining import train as train_with
from trainer.trainer import Hook


def train(config: Config, ranks: Ranks) -> int:
    """Train and return the exit code, with the hooks that the flags ask for."""
    return train_with(config, ranks, load_weights=broadcast_weights, make_hooks=_make_hooks)


def _make_hooks(started: PretrainState, log: RunLog, stop: Stop) -> Sequence[Hook]:
    """Return the hooks of a run; all ranks call this.

    Raises:
        CollectiveError: a file of items or prompts, or the tokenizer of the data, cannot be used.
    """
    settings = started.config.settings
    hooks = []
    if settings.eval_task:
        hooks.append(_benchmarks(started, log, stop))
    if settings.sample_prompts is not None:
        hooks.append(_samples(started, log, stop))
    return hooks


def _benchmarks(started: PretrainState, log: RunLog, stop: Stop) -> Hook:
    from trainer.evaluate.benchmarks import benchmarks_of, main_figures  # noqa: PLC0415  not in every run

    benchmarks = started.ranks.run_on_all_ranks(lambda: benchmarks_of(started))

    def act(step: int) -> None:
        if benchmarks is None:
            return
        figures = benchmarks.score(started.engine.answer, stop=stop.exit_code)
        if figures:
            line = f"step {step:,}/{started.steps:,}  {TASKS}  {main_figures(figures)}"
            samples = started.config.run.position_of(step)
            log.write(TASKS, step, figures, samples=samples, line=line)

    return Hook(every=started.config.settings.eval_every, act=act)


def _samples(started: PretrainState, log: RunLog, stop: Stop) -> Hook:
    from trainer.generate.samples import open_samples  # noqa: PLC0415  not in every run

    samples = open_samples(started, stop=stop)

    def act(step: int) -> None:
        if samples is not None:
            samples.write(step, log)

    return Hook(every=started.config.settings.sample_every, act=act)
