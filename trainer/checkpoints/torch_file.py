"""PyTorch's files, read in a way that runs nothing that stands in them.

A file of `torch.save` is a pickle beside the bytes of its tensors, and a pickle may name any
function and have it called. Here only tensors, plain values and types of a short list are made of
one; any other name is refused before it is looked up. DeepSpeed reads its checkpoints as if it had
written them itself, so torch is told to read every file in this way while DeepSpeed does.
"""

import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import is_zipfile

import torch

from shards.errors import DamageError, UserError
from shards.memory import is_lack_of_memory

_FORCE, _FORCE_NOT = "TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
"""What torch.load asks the environment for; it refuses to load if both are set."""
_ZIP = b"PK\x03\x04"
_OF_CONTENT = (None, errno.EINVAL, errno.EOVERFLOW, errno.ENOENT, errno.ENAMETOOLONG)
"""errno of an OSError that a damaged file can cause: it names no such place, or no such file."""
_RANK_GONE = ("gloo/transport/", "Application timeout caused pair closure")
"""In what gloo raises when another rank is gone or late, a plain RuntimeError."""
_NAMED = re.compile(r"GLOBAL (\S+) was not an allowed")
"""In torch's refusal of a file."""
_LONGEST = 300
"""Characters of an error of torch or DeepSpeed that a message repeats."""
_MOST_NAMED = 5
"""Names of foreign types that a message lists."""
_RUNS = "holds more than tensors and plain values, and reading it could run code"


@contextmanager
def weights_only(types: Sequence[Any]) -> Iterator[None]:
    """Let every torch.load of this process, whatever it asks for, make only values of some types.

    The environment tells the processes that it starts the same, but not the types.

    Args:
        types: allowed besides tensors and plain values, as for `torch.serialization.safe_globals`.
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
    """Return the types that DeepSpeed's checkpoints hold: plain data without code of their own."""
    # DeepSpeed reads DS_ACCELERATOR when it is imported.
    from deepspeed.runtime.fp16.loss_scaler import (  # noqa: PLC0415
        DynamicLossScaler,
        LossScaler,
    )
    from deepspeed.runtime.zero.config import ZeroStageEnum  # noqa: PLC0415
    from deepspeed.utils.tensor_fragment import fragment_address  # noqa: PLC0415

    return [DynamicLossScaler, LossScaler, ZeroStageEnum, fragment_address]


def read(path: Path, types: Sequence[Any], *, advice: str) -> Mapping[Any, Any]:
    """Return the dict in a file, its tensors on the CPU, memory-mapped.

    Raises:
        UserError: as `check`; or it holds no dict.
        DamageError: it is not a PyTorch file, or cut short.
    """
    check(path, types, advice=advice)
    with _refused(path, advice), weights_only(types):
        content = torch.load(path, "cpu", weights_only=True, mmap=True)
    if not isinstance(content, dict):
        raise UserError(f"{path} holds a {type(content).__name__}; expected a checkpoint.")
    return content


def check(path: Path, types: Sequence[Any], *, advice: str) -> None:
    """Check that a file names nothing but tensors and some types; its tensors are not read.

    Args:
        path: the file.
        types: as for `weights_only`.
        advice: what the user may do with a file that is refused; ends the message.

    Raises:
        UserError: it names something else, which reading it could run.
        DamageError: it is not a PyTorch file of torch 1.6 or later, or cut short.
    """
    with _refused(path, advice):
        if not _is_zipped(path):
            raise DamageError(
                f"{path} is not a PyTorch file (of torch 1.6 or later), or was cut short. Copy it "
                "again."
            )
        with torch.serialization.safe_globals(list(types)):
            names = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    if names:
        raise UserError(_foreign(path, sorted(names), advice))


@contextmanager
def _refused(path: Path, advice: str) -> Iterator[None]:
    """Explain what torch raises for a file that it does not read."""
    with explain_damage(path, f"{path} cannot be read", ". Copy it again."):
        try:
            yield
        except UnpicklingError as error:
            raise UserError(_foreign(path, _NAMED.findall(str(error)), advice)) from None


@contextmanager
def explain_damage(path: Path, problem: str, advice: str) -> Iterator[None]:
    """Explain what torch or DeepSpeed raises for damaged files, which is almost anything.

    What tells nothing of the files is left as it is: a lack of memory, a rank that is gone.

    Args:
        path: what is read, a file or a folder.
        problem: begins the message; what was raised follows in parentheses.
        advice: ends it.

    Raises:
        UserError: the system does not let a file be read.
        DamageError: anything else was raised.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if is_lack_of_memory(error) or _is_of_ranks_or_device(error):
            raise
        if isinstance(error, OSError) and error.errno not in _OF_CONTENT:
            raise UserError(
                f"{path} cannot be read now ({one_line(error)}), which does not mean that it is "
                "damaged: see to its disk or its permissions, and run the same command again."
            ) from error
        raise DamageError(f"{problem} ({one_line(error)}){advice}") from error


def _is_of_ranks_or_device(error: Exception) -> bool:
    if isinstance(error, torch.OutOfMemoryError | torch.distributed.DistError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _RANK_GONE)


def _is_zipped(path: Path) -> bool:
    """Return whether torch takes a file for a zip archive, and it is a whole one."""
    with path.open("rb") as stream:
        return stream.read(len(_ZIP)) == _ZIP and is_zipfile(path)


def _foreign(path: Path, names: Sequence[str], advice: str) -> str:
    shown = ", ".join(ascii(name)[1:-1] for name in names[:_MOST_NAMED])
    named = f": it names {shown}" if shown else ""
    return f"{path} was not loaded: it {_RUNS}{named}. {advice}"


def one_line(error: Exception) -> str:
    """Return the beginning of what torch or DeepSpeed says, without control characters."""
    if isinstance(error, UnpicklingError):  # whose text tells how to read it nevertheless
        return f"a file {_RUNS}"
    text = " ".join(str(error).split()) or type(error).__name__
    shown = ascii(text)[1:-1].rstrip(".")
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
