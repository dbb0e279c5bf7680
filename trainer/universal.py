"""Converts checkpoints to DeepSpeed's universal form, for a different number of ranks."""

import io
import shutil
import time
import uuid
from argparse import Namespace
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from torch.utils import _pytree as pytree

from shards.errors import DamageError, UserError
from shards.storage.files import atomic_write, make_folder
from trainer.checkpoint import Checkpoint, torch_files
from trainer.distributed import CollectiveError, Ranks
from trainer.torch_file import deepspeed_types, one_line, read_torch_file, weights_only

_SUFFIX = "-universal"


def needs_conversion(checkpoint: Checkpoint, *, world: int, stage: int) -> bool:
    """Return whether a checkpoint has to be converted before the engine can load it.

    Raises:
        CollectiveError: the engine cannot load the checkpoint in any form; the message says what to
            do.
    """
    if checkpoint.stage != stage:
        raise CollectiveError(
            f"{checkpoint.folder} was written at ZeRO stage {checkpoint.stage}, and its optimizer "
            f"cannot be read at stage {stage}. Resume at stage {checkpoint.stage}, or start a new "
            f"run from its weights: --init-from {checkpoint.folder} --save OTHER."
        )
    return checkpoint.world != world and stage > 0


def convert(checkpoint: Checkpoint, *, ranks: Ranks) -> str:
    """Convert a checkpoint on the first rank, and return the tag of its universal form.

    The universal form is next to the checkpoint until `remove_converted` deletes it. The conversion
    of a large checkpoint takes longer than ranks may wait for each other in a collective, so the
    other ranks poll for a file.

    Raises:
        CollectiveError: DeepSpeed cannot convert the checkpoint.
    """
    target = checkpoint.folder.with_name(checkpoint.tag + _SUFFIX)
    # The name is unique to this start, because a node may still see the file of an interrupted
    # start.
    mark = target / f"converted-{ranks.gather(uuid.uuid4().hex)[0]}"

    def make_empty_target() -> None:
        shutil.rmtree(target, ignore_errors=True)
        make_folder(target)

    ranks.run_on_rank0(make_empty_target)
    if ranks.is_first:
        problem = f"{checkpoint.folder} was not converted: the first rank was stopped."
        try:
            problem = _problem_of_conversion(checkpoint, target)
        finally:  # the other ranks wait for this file
            with atomic_write(mark) as handle:
                handle.write(problem.encode())
    if problem := _wait_for_text(mark):
        remove_converted(checkpoint, ranks=ranks)
        raise CollectiveError(problem)
    return target.name


def _wait_for_text(mark: Path) -> str:
    """Wait until a file exists, and return its text."""
    while not mark.is_file():
        time.sleep(0.2)
    return mark.read_text("utf-8")


def remove_converted(checkpoint: Checkpoint, *, ranks: Ranks) -> None:
    """Remove the universal form of a checkpoint once all ranks have read it."""
    ranks.barrier()
    if ranks.is_first:
        shutil.rmtree(checkpoint.folder.with_name(checkpoint.tag + _SUFFIX), ignore_errors=True)
        (checkpoint.folder.parent / "latest_universal").unlink(missing_ok=True)


def _problem_of_conversion(checkpoint: Checkpoint, target: Path) -> str:
    """Convert a checkpoint and return the error message; empty if the conversion succeeded."""
    try:
        for path in torch_files(checkpoint.folder):
            _check_names(path)
        _convert(checkpoint.folder, target)
    except UserError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001  such as a lack of memory
        return (
            f"{checkpoint.folder} was written by {checkpoint.world} ranks, and DeepSpeed could not "
            f"convert it for another number ({one_line(error)}). Resume with {checkpoint.world} "
            f"ranks, or start from its weights: --init-from {checkpoint.folder}."
        )
    return ""


def _convert(source: Path, target: Path) -> None:
    """Convert a checkpoint as DeepSpeed's command does, in this process."""
    from deepspeed.checkpoint import ds_to_universal  # noqa: PLC0415 - see Ranks.join

    options = Namespace(
        input_folder=str(source),
        output_folder=str(target),
        num_extract_workers=1,
        num_merge_workers=1,
        keep_temp_folder=False,
        strict=True,
        inject_missing_state=True,
    )
    printed = io.StringIO()
    with weights_only(deepspeed_types()), redirect_stdout(printed), redirect_stderr(printed):
        ds_to_universal.main(options)


def _check_names(path: Path) -> None:
    """Check that no name in a file leads out of a folder: DeepSpeed makes folders of names."""
    for way, _ in pytree.tree_flatten_with_path(read_torch_file(path, deepspeed_types()))[0]:
        names = (step.key for step in way if isinstance(step, pytree.MappingKey))
        for name in names:
            if isinstance(name, str) and not _stays_inside(name):
                raise DamageError(
                    f"{path} has an entry named {name!a}, which this trainer does not write: "
                    "restore the file."
                )


def _stays_inside(name: str) -> bool:
    return "/" not in name and "\0" not in name and name not in ("", ".", "..")
