"""Where a run resumes, and whether a checkpoint belongs to it; all ranks find the same."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shards.errors import DamageError, UserError
from shards.flags import flag_of
from shards.manifest import told_apart
from trainer.checkpoint import (
    LATEST,
    VERSION,
    Checkpoint,
    NoCheckpointError,
    check_files,
    find_checkpoint,
    find_later_steps,
    was_saved,
)
from trainer.config import RESUME_AUTO, RESUME_NONE, Learning
from trainer.data import RunData
from trainer.distributed import CollectiveError, Ranks
from trainer.engine import after_removal

_FOREVER = 2**62
"""Beyond any position."""
_log = logging.getLogger(__name__)


def find_resume_point(
    settings: Learning, ranks: Ranks, *, check: Callable[[Checkpoint], None]
) -> Checkpoint | None:
    """Return the checkpoint to resume from, its files checked; None to start from the beginning.

    Args:
        settings: of the run.
        ranks: all of them call this.
        check: checks the state that the checkpoint records.
    """
    checkpoint = _find_checkpoint(settings, ranks)
    if checkpoint is not None:
        check_files(checkpoint, ranks=ranks)
        ranks.run_on_all_ranks(lambda: _check_version(checkpoint))
        ranks.run_on_all_ranks(lambda: check(checkpoint))
    return checkpoint


def _check_version(checkpoint: Checkpoint) -> None:
    if checkpoint.version != VERSION:
        raise UserError(
            f"{checkpoint.folder} was saved by an earlier version of corpusmill, which drew other "
            "masks of dropout, so this version cannot resume it. Start a new run from its weights: "
            f"--init-from {checkpoint.folder} --save OTHER."
        )


def _find_checkpoint(settings: Learning, ranks: Ranks) -> Checkpoint | None:
    """Return the checkpoint to resume from, None to start from the beginning."""
    save = settings.save
    if settings.resume == RESUME_AUTO:
        return None if save is None else _find_newest(save, ranks)
    is_new = settings.resume == RESUME_NONE
    checkpoint = None if is_new else _find_named(Path(settings.resume), ranks)
    if save is not None:
        ranks.run_on_rank0(lambda: _check_no_later_steps(save, resumed=checkpoint))
    return checkpoint


def _find_newest(folder: Path, ranks: Ranks) -> Checkpoint | None:
    """Return the newest checkpoint of a run; None if none was ever whole.

    Raises:
        CollectiveError: one was, and none can be used any more.
    """
    problem = f"{folder} holds no checkpoint"
    is_saved = ranks.run_on_rank0(lambda: was_saved(folder))
    try:
        checkpoint = find_checkpoint(folder, ranks=ranks)
    except NoCheckpointError as error:
        checkpoint, problem = None, str(error)
        if ranks.is_first and not is_saved:
            _log.warning("%s; the run starts from the beginning", error)
    if checkpoint is None and is_saved:
        raise CollectiveError(
            f"{problem}. The file {folder / LATEST} shows that the run was saved before, so it "
            "does not start from the beginning there. Restore a checkpoint, or choose another "
            "--save."
        )
    return checkpoint


def _find_named(folder: Path, ranks: Ranks) -> Checkpoint:
    """Return the checkpoint that --resume names."""
    try:
        checkpoint = find_checkpoint(folder, ranks=ranks)
    except NoCheckpointError as error:
        raise CollectiveError(
            f"--resume {folder}: {error}. Give a folder with a complete one."
        ) from error
    if checkpoint is None:
        raise CollectiveError(
            f"--resume {folder}: there is no checkpoint of that name or in that folder; give a "
            "run's folder, or one of its step-N."
        )
    return checkpoint


def _check_no_later_steps(folder: Path, *, resumed: Checkpoint | None) -> None:
    """Check that a run will not write its checkpoints among those of another run in --save."""
    is_own = resumed is not None and resumed.folder.parent.samefile(folder)
    last = resumed.step if resumed is not None and is_own else -1
    if steps := find_later_steps(folder, after=last):
        raise UserError(
            f"{folder} holds step-{steps[0]} and this run would not resume from it: give another "
            "--save, or --resume auto."
        )


def check_state(checkpoint: Checkpoint) -> None:
    """Check that a checkpoint has the state of a run, as `PretrainState.state` makes it.

    Raises:
        UserError: it is of another command.
        DamageError: something is missing, or of another type.
    """
    state, loader = checkpoint.state, checkpoint.state.get("loader")
    if "tuning" in state:
        raise UserError(
            f"{checkpoint.folder} is a checkpoint of trainer.finetune, and this run cannot resume "
            f"from it. Start from its weights: --init-from {checkpoint.folder} --save OTHER."
        )
    types = {"loader": dict, "identity": dict, "schedule": dict, "bad_losses": int}
    wrong = [name for name, kind in types.items() if not isinstance(state.get(name), kind)]
    if isinstance(loader, dict):
        position = loader.get("position")
        if not isinstance(position, int) or not 0 <= position < _FOREVER:
            wrong.append("loader.position")
        if not isinstance(loader.get("shards"), dict):
            wrong.append("loader.shards")
    if wrong:
        raise DamageError(
            f"{checkpoint.folder} does not hold the state of a run: {wrong[0]} in its "
            "whole-*.json is missing or of a wrong type. Bring the file back as it was, or remove "
            f"the folder, and the run {after_removal(checkpoint.folder.parent, checkpoint.step)}."
        )


def check_same_run(checkpoint: Checkpoint, identity: Mapping[str, Any], *, data: RunData) -> None:
    """Check that a checkpoint belongs to this run.

    Raises:
        UserError: the run differs in something that decides what is learnt; the message names it.
    """
    loader = checkpoint.state["loader"]
    own = data.sampler.state_dict(loader["position"])
    changed = differences(checkpoint.state["identity"], identity)
    changed += differences(_sampling_flags(loader), _sampling_flags(own))
    otherwise = (
        "start a new run from its weights, which fit the same shape, or with --extend-positions "
        f"more positions: --init-from {checkpoint.folder} --save OTHER."
    )
    refuse_changes(changed, checkpoint, otherwise=otherwise)
    _check_same_text(checkpoint, data)
    try:
        position = data.sampler.load_state_dict(loader)
    except UserError as error:
        raise UserError(f"{checkpoint.folder}: {error}") from error
    step = checkpoint.step
    if data.run.position_of(step) != position:
        raise UserError(
            f"at step {step:,} of {checkpoint.folder} the run had taken {position:,} samples; "
            f"with the current --batch-size it would have taken {data.run.position_of(step):,}. "
            "Give the earlier batch size first, and start the new one at this step: --batch-size "
            f"SIZE {step}:SIZE."
        )


def _sampling_flags(loader: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that decide which samples are drawn, from the state of a sampler."""
    window = loader.get("window")
    if not isinstance(window, Mapping):  # of a damaged state, which the sampler refuses
        return {}
    length, classes = (window.get(name, 0) for name in ("length", "num_cls"))
    flags = {name: loader.get(name) for name in ("seed", "num_scatters")}
    return {**flags, "length": length + classes, "slack": window.get("slack")}


def refuse_changes(
    changed: Sequence[tuple[str, Any, Any]], checkpoint: Checkpoint, *, otherwise: str
) -> None:
    """Refuse to resume a run that differs from its checkpoint.

    Args:
        changed: `differences` from what it records.
        checkpoint: of the run.
        otherwise: how to start another run.

    Raises:
        UserError: there are some; the message names the first.
    """
    for name, before, now in changed[:1]:
        raise UserError(
            f"{checkpoint.folder} was saved by a run with other options: {_flag_shown(name)} was "
            f"{before}, and this command has {now}. Set it back, or {otherwise}"
        )


def _flag_shown(name: str) -> str:
    """Return how a message names an option: by its flag, and the key behind it."""
    option, _, key = name.partition(".")
    shown = {"num_scatters": "--scatters", "tokenizer": "the tokenizer"}
    return f"{shown.get(option, flag_of(option))} {key}".rstrip()


def _check_same_text(checkpoint: Checkpoint, data: RunData) -> None:
    """Check that the data have all streams that were drawn from before a checkpoint."""
    drawn = checkpoint.state["loader"]["shards"]
    if missing := sorted(set(drawn) - set(data.sampler.names)):
        folders = ", ".join(str(dataset.directory) for dataset in data.datasets)
        raise UserError(
            f"this run cannot resume from {checkpoint.folder}: it was trained on "
            f"{', '.join(missing)}, and {folders} has no such text: these are other data, or they "
            "were overwritten or compacted since. Give the data as they were, or start a new run "
            f"from its weights: --init-from {checkpoint.folder} --save OTHER."
        )


def differences(before: Any, now: Any, name: str = "") -> list[tuple[str, Any, Any]]:
    """Return the leaves in which two JSON values differ: name, earlier value, present value."""
    if not (isinstance(before, Mapping) and isinstance(now, Mapping)):
        return [] if before == now else [(name, before, now)]
    if before.keys() == now.keys() == {"name", "sha256"} and before != now:  # of a tokenizer
        # A checkpoint that somebody changed may hold anything.
        both = ((str(each["name"]), str(each["sha256"])) for each in (before, now))
        return [(name, *told_apart(*both))]
    return [
        difference
        for key in sorted({*before, *now})
        for difference in differences(before.get(key), now.get(key), f"{name}.{key}".lstrip("."))
    ]
