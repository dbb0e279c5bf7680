"""Opens the held-out text of a trained model's run."""

from collections.abc import Sequence
from dataclasses import replace

from shards.errors import UserError
from shards.manifest import distinct_labels
from shards.records import from_json
from shards.sampling.mixture import Blend
from shards.sampling.plan import BatchSize, SamplingPlan
from shards.sampling.switches import before_later_switches
from trainer.config import TrainConfig
from trainer.data import RunData, fetch_published, open_data
from trainer.distributed import Ranks
from trainer.import_weights.loaded_model import ModelSource


def _held_out_plan(source: ModelSource, data: Sequence[str]) -> SamplingPlan:
    """Return the sampling plan of a model's run at the model's step, perhaps with different data.

    Args:
        source: the description of the model.
        data: the data to read, in the form of `--data`; empty for the data of the run.

    Raises:
        UserError: no data are known.
    """
    if not source.state:
        return _plan_of_windows(source, data)
    if "progress" in source.state:
        raise UserError(
            f"{source.path} was fine-tuned by trainer.finetune: it has no held-out text. Give a "
            "benchmark: --task NAME=FILE."
        )
    try:
        plan = from_json(SamplingPlan, source.state["run"], where="run")
    except (KeyError, ValueError) as error:
        raise UserError(
            f"{source.path} does not contain the state of a run ({error}): restore its "
            "whole-*.json."
        ) from error
    if data:
        mixes = (Blend(start=0, data=tuple(data)),)
        plan = replace(plan, mixes=mixes, scatters=1, max_epochs={}, followed=None)
    return before_later_switches(plan, plan.position_of(source.step or 0))


def _plan_of_windows(source: ModelSource, data: Sequence[str]) -> SamplingPlan:
    """Return a sampling plan with the windows of a model that comes from none of our runs.

    Raises:
        UserError: there are no data.
    """
    if not data:
        raise UserError(f"{source.path} does not record its training data: give --data DIR.")
    return SamplingPlan(
        mixes=(Blend(start=0, data=tuple(data)),),
        batches=(BatchSize(step=0, size=1),),
        objective=source.objective,
        length=source.length or source.shape.max_positions,
        steps=1,
    )


def open_held_out(
    source: ModelSource, data: Sequence[str], *, eval_samples: int, ranks: Ranks
) -> RunData:
    """Return the data of a model's run with its windows and blanks; all ranks call this.

    Args:
        source: the description of the model.
        data: the data to read, in the form of `--data`; empty for the data of the run.
        eval_samples: the number of windows to read, as with `--eval-samples`.
        ranks: the ranks that read the windows.

    Raises:
        UserError: the data cannot be read, or do not fit the model.
    """
    plan = fetch_published(ranks.run_on_all_ranks(lambda: _held_out_plan(source, data)), ranks)
    config = ranks.run_on_all_ranks(lambda: _config_of(source, eval_samples=eval_samples))
    opened = ranks.run_on_all_ranks(lambda: open_data(config, plan, source.shape))
    ranks.run_on_all_ranks(lambda: _check_tokenizer(opened, source))
    return opened


def _check_tokenizer(opened: RunData, source: ModelSource) -> None:
    found = opened.tokenizer
    sha256 = source.tokenizer.get("sha256", found["sha256"])
    if found["sha256"] != sha256:
        own = source.tokenizer["name"], sha256
        other, trained = distinct_labels((found["name"], found["sha256"]), own)
        raise UserError(
            f"{opened.datasets[0].directory} was made with the tokenizer {other}, and "
            f"{source.path} was trained with {trained}: the ids mean other text. Give data made "
            "with that one."
        )


def _config_of(source: ModelSource, *, eval_samples: int) -> TrainConfig:
    """Return the options that decide how the text of a run is read."""
    blanks = source.state.get("identity", {}).get("blanks") or {}
    return TrainConfig(
        model=str(source.path),
        blanks=tuple(f"{name}={value}" for name, value in blanks.items()),
        isolate_documents=source.isolate_documents,
        eval_samples=eval_samples,
    )
