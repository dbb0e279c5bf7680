"""A checkpoint for another number of ranks: DeepSpeed's universal form, made when it is needed."""

import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path

from shards.errors import UserError
from shards.storage.files import atomic_write, make_folder
from trainer.checkpoint import Checkpoint
from trainer.ranks import AgreedError, Ranks

_SUFFIX = "-universal"


def needs_conversion(checkpoint: Checkpoint, *, world: int, stage: int) -> bool:
    """Return whether the engine cannot take a checkpoint as it is.

    Raises:
        AgreedError: it cannot in any form; the message names the way.
    """
    if checkpoint.stage != stage:
        raise AgreedError(
            f"{checkpoint.folder} was written at ZeRO stage {checkpoint.stage}, and its optimizer "
            f"cannot be read at stage {stage}. Go on at stage {checkpoint.stage}, or begin a new "
            f"run from its weights: --init-from {checkpoint.folder} --save OTHER."
        )
    return checkpoint.world != world and stage > 0


def convert(checkpoint: Checkpoint, *, ranks: Ranks) -> str:
    """Return the tag of the universal form of a checkpoint, which the first rank makes.

    It lies beside the checkpoint, and `remove` takes it away. For a large one that takes longer
    than ranks may wait for each other in a collective, so the others look for a file.

    Raises:
        AgreedError: not all ranks see it, or DeepSpeed cannot convert it.
    """
    target = checkpoint.folder.with_name(checkpoint.tag + _SUFFIX)
    # A name of this start: a node may still see the file of one that was cut off.
    mark = target / f"converted-{ranks.gather(uuid.uuid4().hex)[0]}"

    def empty() -> None:
        if ranks.is_first:
            shutil.rmtree(target, ignore_errors=True)
            make_folder(target)

    def check() -> None:
        if not target.is_dir():
            raise UserError(
                f"{checkpoint.folder} was written by {checkpoint.world} ranks and is read by "
                f"{ranks.world}, which takes one folder that all of them see. Copy the "
                "checkpoint's files of all nodes into one, and name it: --resume DIR."
            )

    ranks.together(empty)
    ranks.together(check)
    if ranks.is_first:
        problem = _convert(checkpoint, target)
        with atomic_write(mark) as handle:
            handle.write(problem.encode())
    if problem := _await(mark):
        remove(checkpoint, ranks=ranks)
        raise AgreedError(problem)
    return target.name


def _await(mark: Path) -> str:
    """Return what a file says, as soon as it is there."""
    while not mark.is_file():
        time.sleep(0.2)
    return mark.read_text("utf-8")


def remove(checkpoint: Checkpoint, *, ranks: Ranks) -> None:
    """Remove the universal form of a checkpoint, when all ranks have read it."""
    ranks.barrier()
    if ranks.is_first:
        shutil.rmtree(checkpoint.folder.with_name(checkpoint.tag + _SUFFIX), ignore_errors=True)
        (checkpoint.folder.parent / "latest_universal").unlink(missing_ok=True)


def _convert(checkpoint: Checkpoint, target: Path) -> str:
    """Return what was wrong with the conversion, nothing if it went well."""
    command = [
        *(sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal"),
        *("--input_folder", str(checkpoint.folder), "--output_folder", str(target)),
        "--inject_missing_state",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.returncode:
        return ""
    return (
        f"{checkpoint.folder} was written by {checkpoint.world} ranks, and DeepSpeed could not "
        f"convert it for another number: {done.stderr.strip().splitlines()[-1:]}. Go on with "
        f"{checkpoint.world} ranks, or begin from its weights: --init-from {checkpoint.folder}."
    )
