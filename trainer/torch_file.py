"""Reads PyTorch's files without running any code in them.

A file of `torch.save` contains a pickle next to the bytes of its tensors, and a pickle may name any
function to be called. Here torch restores only tensors, plain values and the types of a short list,
and refuses any other name before it is looked up. DeepSpeed trusts the checkpoints that it reads;
torch is therefore forced to read every file in this way while DeepSpeed reads.
"""

import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from shards.errors import DamageError, UserError
from shards.memory import is_out_of_memory

_FORCE, _FORCE_NOT = "TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
"""Environment variables that torch.load reads, which refuses to load if both are set."""
_OF_CONTENT = (None, errno.EINVAL, errno.EOVERFLOW, errno.ENOENT, errno.ENAMETOOLONG)
"""The errno of each OSError that a damaged file can cause, such as an impossible offset or name."""
_RANK_GONE = ("gloo/transport/", "Application timeout caused pair closure")
"""Parts of the text of the RuntimeError that gloo raises when a different rank is gone or late."""
_NAMED = re.compile(r"GLOBAL (\S+) (?:was not|whose module)")
"""Matches the name in torch's error about a type that it refuses."""
_LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""The beginning of a file of torch before 1.6, which has pickles and cannot be memory-mapped."""
_MAX_SHOWN = 300
"""The maximum number of characters of a quoted error of torch or DeepSpeed."""


@contextmanager
def weights_only(types: Sequence[Any]) -> Iterator[None]:
    """Restrict every torch.load of this process, with any arguments, to a list of types.

    Processes that this process starts inherit the environment, but not the types.

    Args:
        types: the types allowed in addition to tensors and plain values, as for
            `torch.serialization.safe_globals`.
    """
    before = {name: os.environ.pop(name, None) for name in (_FORCE, _FORCE_NOT)}
    os.environ[_FORCE] = "1"
    try:
        with torch.serialization.safe_globals(list(types)):
            yield
    finally:
        del os.environ[_FORCE]
        os.environ.update({name: value for name, value in before.items() if value is not None})


def deepspeed_types() -> list[Any]:
    """Return the types in DeepSpeed's checkpoints, which are plain data and contain no code."""
    # DeepSpeed reads DS_ACCELERATOR when it is imported.
    from deepspeed.runtime.fp16.loss_scaler import (  # noqa: PLC0415
        DynamicLossScaler,
        LossScaler,
    )
    from deepspeed.runtime.zero.config import ZeroStageEnum  # noqa: PLC0415
    from deepspeed.utils.tensor_fragment import fragment_address  # noqa: PLC0415

    return [DynamicLossScaler, LossScaler, ZeroStageEnum, fragment_address]


def read_torch_file(path: Path, types: Sequence[Any]) -> Mapping[Any, Any]:
    """Return the dict in a file of torch, with its tensors on the CPU.

    The tensors are memory-mapped, except those in files of torch before 1.6.

    Args:
        path: the path of the file.
        types: the allowed types, as for `weights_only`.

    Raises:
        UserError: the file does not contain a dict, or cannot be read now.
        DamageError: the file is not a PyTorch file, or is truncated.
    """
    advice = ": it is not a file of torch, or was damaged. Copy it again."
    with explain_damage(path, f"{path} cannot be read", advice), weights_only(types):
        content = torch.load(path, "cpu", mmap=not _is_legacy(path))
    if not isinstance(content, dict):
        raise UserError(f"{path} contains a {type(content).__name__}; expected a checkpoint.")
    return content


def _is_legacy(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_LEGACY)) == _LEGACY


@contextmanager
def explain_damage(path: Path, problem: str, advice: str) -> Iterator[None]:
    """Explain errors of reading damaged files; torch and DeepSpeed may raise almost any type.

    Errors that are not about the files pass unchanged, such as a lack of memory or a rank that is
    gone.

    Args:
        path: the file or folder that is read.
        problem: the beginning of the message; the error follows in parentheses.
        advice: the end of the message.

    Raises:
        UserError: the system does not allow a file to be read, or torch refuses its content.
        DamageError: any other error was raised.
    """
    try:
        yield
    except UserError:
        raise
    except UnpicklingError as error:  # its text explains how to read the file nevertheless
        named = ", ".join(ascii(name)[1:-1] for name in _NAMED.findall(str(error)))
        raise UserError(
            f"{path} was not loaded: it contains more than tensors and plain values, and reading "
            f"it could run code{f': it names {named}' if named else ''}. This trainer does not "
            "write such files: restore it. If you trust who made it, load it elsewhere and save "
            "only its weights, as {'module': …}."
        ) from None
    except Exception as error:
        if is_out_of_memory(error) or _is_of_ranks_or_device(error):
            raise
        if isinstance(error, OSError) and error.errno not in _OF_CONTENT:
            raise UserError(
                f"{path} cannot be read now ({one_line(error)}), which does not mean that it is "
                "damaged: check its disk and its permissions, and run the same command again."
            ) from error
        raise DamageError(f"{problem} ({one_line(error)}){advice}") from error


def _is_of_ranks_or_device(error: Exception) -> bool:
    if isinstance(error, torch.OutOfMemoryError | torch.distributed.DistError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _RANK_GONE)


def one_line(error: Exception) -> str:
    """Return the beginning of an error's text, without control characters."""
    text = " ".join(str(error).split()) or type(error).__name__
    shown = ascii(text)[1:-1].rstrip(".")
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}…"
