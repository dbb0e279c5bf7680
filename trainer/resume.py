"""Finds the checkpoint that a run resumes from, and checks that it belongs to the run."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shards.commands.flags import flag_of
from shards.errors import DamageError, UserError
from shards.manifest import distinct_labels
from trainer.checkpoint import (
    IF_REMOVED,
    LATEST,
    VERSION,
    Checkpoint,
    NoCheckpointError,
    check_files,
    find_checkpoint,
    find_later_steps,
)
from trainer.config import RESUME_AUTO, RESUME_NONE, RunConfig
from trainer.distributed import CollectiveError, Ranks

_OWN = {"loader", "progress"}
"""Parts of the state that only trainer.train or only trainer.finetune records."""
_FOREVER = 2**62
"""A number above any position."""
_log = logging.getLogger(__name__)


def find_resume_point(
    config: RunConfig, ranks: Ranks, *, parts: Mapping[str, type]
) -> Checkpoint | None:
    """Return the checkpoint to resume from, after checking its files; None to start a new run.

    Args:
        config: the configuration of the run.
        ranks: the ranks of the run, which all call this.
        parts: the parts of the state that only checkpoints of this command have, and their types;
            a.b names a nested part, and a whole number must be 0 or more.
    """
    checkpoint = _find_checkpoint(config, ranks)
    if checkpoint is None:
        return None
    check_files(checkpoint, ranks=ranks)
    ranks.run_on_all_ranks(lambda: _check_state(checkpoint, parts))
    if config.init_from is not None and ranks.is_first:
        folder = checkpoint.folder
        _log.info("--init-from %s is not read: the run resumes from %s", config.init_from, folder)
    return checkpoint


def _check_state(checkpoint: Checkpoint, parts: Mapping[str, type]) -> None:
    """Check that a checkpoint was saved by this command and version, and that its state is valid.

    Raises:
        UserError: a different command or version saved the checkpoint.
        DamageError: a part of the state is missing or has the wrong type.
    """
    folder, state = checkpoint.folder, checkpoint.state
    whose = "an earlier version of corpusmill" if checkpoint.version != VERSION else ""
    if (_OWN - parts.keys()) & state.keys():
        whose = "another command"
    if whose:
        raise UserError(
            f"{folder} was saved by {whose}, and this run cannot resume from it. Start a new run "
            f"from its weights: --init-from {folder} --save OTHER."
        )
    types = {"identity": dict, "options": dict, "bad_losses": int, **parts}
    wrong = [name for name, kind in types.items() if not _is_of(kind, state, name.split("."))]
    if wrong:
        raise DamageError(
            f"{folder} does not contain the state of a run: {wrong[0]} in its whole-*.json is "
            f"missing or has a wrong type. Restore the file, or {IF_REMOVED}."
        )


def _is_of(kind: type, value: Any, path: Sequence[str]) -> bool:
    """Return whether a part of a JSON value has a type; a whole number must be 0 or more."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    is_whole = isinstance(value, int) and 0 <= value < _FOREVER
    return is_whole if kind is int else isinstance(value, kind)


def _find_checkpoint(config: RunConfig, ranks: Ranks) -> Checkpoint | None:
    """Return the checkpoint that --resume selects; None to start a new run."""
    save, resume = config.save, config.resume
    if resume == RESUME_AUTO:
        return None if save is None else _find_newest(save, ranks)
    checkpoint = None
    if resume != RESUME_NONE:
        problem = "there is no checkpoint of that name or in that folder"
        try:
            checkpoint = find_checkpoint(Path(resume), ranks=ranks)
        except NoCheckpointError as error:
            problem = str(error)
        if checkpoint is None:
            raise CollectiveError(
                f"--resume {resume}: {problem}. Give a run's folder with a complete one, or one of "
                "its step-N."
            )
    if save is not None:
        ranks.run_on_rank0(lambda: _check_no_later_steps(save, resumed=checkpoint))
    return checkpoint


def _find_newest(folder: Path, ranks: Ranks) -> Checkpoint | None:
    """Return the newest checkpoint of a run; None if no checkpoint was ever completed.

    Raises:
        CollectiveError: a checkpoint was completed, but none can be used any more.
    """
    problem = f"{folder} contains no checkpoint"
    is_saved = ranks.run_on_rank0((folder / LATEST).exists)
    try:
        if (checkpoint := find_checkpoint(folder, ranks=ranks)) is not None:
            return checkpoint
    except NoCheckpointError as error:
        problem = str(error)
        if ranks.is_first and not is_saved:
            _log.warning("%s; the run starts from the beginning", problem)
    if is_saved:
        raise CollectiveError(
            f"{problem}. The file {folder / LATEST} shows that the run was saved before, so it "
            "does not start from the beginning there. Restore a checkpoint, or choose another "
            "--save."
        )
    return None


def _check_no_later_steps(folder: Path, *, resumed: Checkpoint | None) -> None:
    """Check that --save contains no checkpoints of later steps, which belong to a different run."""
    is_own = resumed is not None and resumed.folder.parent.samefile(folder)
    last = resumed.step if resumed is not None and is_own else -1
    if steps := find_later_steps(folder, after=last):
        raise UserError(
            f"{folder} contains step-{steps[0]}, which this run would not resume from: give "
            "another --save, or --resume auto."
        )


def refuse_changes(changed: Sequence[tuple[str, Any, Any]], checkpoint: Checkpoint) -> None:
    """Refuse to resume a run that differs from its checkpoint.

    Args:
        changed: the `differences` between the checkpoint's state and the run.
        checkpoint: the checkpoint.

    Raises:
        UserError: there are differences; the message names the first difference.
    """
    for name, before, now in changed[:1]:
        hint = ", and --extend-positions for more" if name == "model.max_positions" else ""
        raise UserError(
            f"{checkpoint.folder} was saved by a run with other options: {_flag_shown(name)} was "
            f"{before}, and this command has {now}. Set it back, or start a new run from its "
            f"weights: --init-from {checkpoint.folder} --save OTHER{hint}."
        )


def _flag_shown(name: str) -> str:
    """Return the name of an option in a message: its flag and, if nested, the key."""
    option, _, key = name.partition(".")
    shown = "the tokenizer" if option == "tokenizer" else flag_of(option)
    return f"{shown} {key}".rstrip()


def differences(before: Any, now: Any, name: str = "") -> list[tuple[str, Any, Any]]:
    """Return the leaves in which two JSON values differ: name, earlier value and current value."""
    if not (isinstance(before, Mapping) and isinstance(now, Mapping)):
        return [] if before == now else [(name, before, now)]
    if before.keys() == now.keys() == {"name", "sha256"} and before != now:  # a tokenizer
        # A checkpoint that somebody has edited may contain anything.
        both = ((str(each["name"]), str(each["sha256"])) for each in (before, now))
        return [(name, *distinct_labels(*both))]
    return [
        difference
        for key in sorted({*before, *now})
        for difference in differences(before.get(key), now.get(key), f"{name}.{key}".lstrip("."))
    ]
