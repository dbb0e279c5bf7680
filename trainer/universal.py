"""A checkpoint for another number of ranks: DeepSpeed's universal form, made when it is needed."""

import shutil
import subprocess
import sys
from pathlib import Path

from shards.errors import UserError
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

    It lies beside the checkpoint, and `remove` takes it away.

    Raises:
        UserError: not all ranks see it, or DeepSpeed cannot convert it.
    """
    target = checkpoint.folder.with_name(checkpoint.tag + _SUFFIX)
    if ranks.is_first:
        shutil.rmtree(target, ignore_errors=True)
    ranks.barrier()
    ranks.together(lambda: _convert(checkpoint, target) if ranks.is_first else None)

    def check() -> None:
        if not target.is_dir():
            raise UserError(
                f"{checkpoint.folder} was written by {checkpoint.world} ranks and is read by "
                f"{ranks.world}, which takes one folder that all of them see. Copy the "
                "checkpoint's files of all nodes into one, and name it: --resume DIR."
            )

    ranks.together(check)
    return target.name


def remove(checkpoint: Checkpoint, *, ranks: Ranks) -> None:
    """Remove the universal form of a checkpoint, when all ranks have read it."""
    ranks.barrier()
    if ranks.is_first:
        shutil.rmtree(checkpoint.folder.with_name(checkpoint.tag + _SUFFIX), ignore_errors=True)
        (checkpoint.folder.parent / "latest_universal").unlink(missing_ok=True)


def _convert(checkpoint: Checkpoint, target: Path) -> None:
    command = [
        *(sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal"),
        *("--input_folder", str(checkpoint.folder), "--output_folder", str(target)),
        "--inject_missing_state",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(
            f"{checkpoint.folder} was written by {checkpoint.world} ranks, and DeepSpeed could not "
            f"convert it for another number: {done.stderr.strip().splitlines()[-1:]}. Go on with "
            f"{checkpoint.world} ranks, or begin from its weights: --init-from {checkpoint.folder}."
        )
