"""PyTorch's files, read in a way that runs nothing that stands in them.

A file of `torch.save` is a pickle beside the bytes of its tensors, and a pickle may name any
function and have it called. Here only tensors, plain values and types of a short list are made of
one; any other name is refused before it is looked up. DeepSpeed reads its checkpoints as if it had
written them itself, so torch is told to read every file in this way while DeepSpeed does.
"""

import errno
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import BadZipFile, ZipFile, is_zipfile

import torch
from torch import Tensor

from shards.errors import DamageError, UserError
from shards.memory import is_lack_of_memory

_FORCE, _FORCE_NOT = "TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
"""What torch.load asks the environment for; it refuses to load if both are set."""
_BEFORE_ZIP = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""torch.serialization.MAGIC_NUMBER as a pickle."""
_ZIP = b"PK\x03\x04"
"""What torch.load knows the present format by."""
_OF_CONTENT = (None, errno.EINVAL, errno.EOVERFLOW, errno.ENOENT, errno.ENAMETOOLONG)
"""errno of an OSError that a damaged file can cause: it names no such place, or no such file."""
_RANK_GONE = ("gloo/transport/", "Application timeout caused pair closure")
"""In what gloo raises when another rank is gone or late, a plain RuntimeError."""
_OF_TENSOR = re.compile(r"/data/\d+$")
"""The names of entries that hold values."""
_BLOCK_BYTES = 4 << 20
"""Read at a time for a checksum."""
_LONGEST = 300
"""Characters of an error of torch or DeepSpeed that a message repeats."""
_MOST_NAMED = 5
"""Names of foreign types that a message lists."""


@contextmanager
def nothing_runs(types: Sequence[Any]) -> Iterator[None]:
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
    """Return the dict in a file, its tensors on the CPU, memory-mapped if its format allows that.

    The values of tensors are not compared with their checksums; `check_values` does that.

    Raises:
        UserError: as `check`; or it holds no dict.
        DamageError: it is not a PyTorch file, or cut short, or has other bytes than were written.
    """
    if _is_zip(path, advice):
        _check_zip(path, types, advice)
        _check_sums(path, advice)
    content = _load(path, types, advice)  # which checks the older format
    if not isinstance(content, dict):
        raise UserError(f"{path} holds a {type(content).__name__}; expected a checkpoint.")
    return content


def check(path: Path, types: Sequence[Any], *, advice: str) -> None:
    """Check that a file names nothing but tensors and some types.

    Its tensors are not read, unless it is of the format before torch 1.6, in which the names stand
    between them.

    Args:
        path: the file.
        types: as for `nothing_runs`.
        advice: what the user may do with a file that is refused; ends the message.

    Raises:
        UserError: it names something else, which reading it could run.
        DamageError: it is not a PyTorch file, or cut short.
    """
    if _is_zip(path, advice):
        _check_zip(path, types, advice)
    else:
        _load(path, types, advice)


def _is_zip(path: Path, advice: str) -> bool:
    """Return whether a file is of the present format, not of the one before torch 1.6.

    Raises:
        DamageError: it is of neither.
    """
    with _refused(path, advice):
        if _is_zipped(path):
            return True
        if not _starts(path, _BEFORE_ZIP):
            raise DamageError(f"{path} is not a PyTorch file, or was cut short. Copy it again.")
        return False


def _check_zip(path: Path, types: Sequence[Any], advice: str) -> None:
    with _refused(path, advice), torch.serialization.safe_globals(list(types)):
        names = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    if names:
        raise UserError(_foreign(path, sorted(names), advice))


def check_values(path: Path, tensors: Iterable[Tensor], *, advice: str) -> None:
    """Compare the values of tensors with the checksums in their file, which torch does not read.

    Only those that are used need be given: of a checkpoint a third are weights. Torch does not say
    which entry a tensor was read from, so its bytes must be those of one that is as long.
    A CRC-32 of 0 was not computed (`torch.serialization.set_crc32_options`). The format before
    torch 1.6 has none.

    Args:
        path: the file.
        tensors: of what `read` returned for it.
        advice: as for `check`.

    Raises:
        DamageError: the file has other bytes than were written.
    """
    if not _is_zip(path, advice):
        return
    with _refused(path, advice), ZipFile(path) as archive:
        sums = {(entry.file_size, entry.CRC) for entry in archive.infolist()}
    lengths = {length for length, _ in sums}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        length = storage.nbytes()
        if not length or (length, 0) in sums:
            continue
        content: Any = torch.empty(0, dtype=torch.uint8).set_(storage).numpy()
        if length not in lengths or (length, zlib.crc32(content)) not in sums:
            raise DamageError(
                f"{path} is damaged: {length:,} bytes of its tensors have none of the checksums "
                "(CRC-32) beside them. Copy it again."
            )


def _check_sums(path: Path, advice: str) -> None:
    """Compare all but the values of tensors with their checksums."""
    with _refused(path, advice), ZipFile(path) as archive:
        for entry in archive.infolist():
            if not entry.CRC or _OF_TENSOR.search(entry.filename):
                continue
            try:
                with archive.open(entry) as stream:
                    while stream.read(_BLOCK_BYTES):
                        pass
            except BadZipFile as error:
                raise DamageError(
                    f"{path} is damaged: its bytes are not those that were written "
                    f"({one_line(error)}). Copy it again."
                ) from error


def _load(path: Path, types: Sequence[Any], advice: str) -> Any:
    with _refused(path, advice), nothing_runs(types):
        return torch.load(path, "cpu", weights_only=True, mmap=_is_zipped(path))


@contextmanager
def _refused(path: Path, advice: str) -> Iterator[None]:
    """Explain what torch raises for a file that it does not read."""
    with damage_told(path, f"{path} cannot be read", ". Copy it again."):
        try:
            yield
        except UnpicklingError:
            raise UserError(_foreign(path, [], advice)) from None


@contextmanager
def damage_told(path: Path, problem: str, advice: str) -> Iterator[None]:
    """Tell what torch or DeepSpeed raises for damaged files, which is almost anything, as damage.

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
    return _starts(path, _ZIP) and is_zipfile(path)


def _starts(path: Path, magic: bytes) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(magic)) == magic


def _foreign(path: Path, names: Sequence[str], advice: str) -> str:
    shown = ", ".join(ascii(name)[1:-1] for name in names[:_MOST_NAMED])
    return (
        f"{path} was not loaded: it holds more than tensors and plain values, and reading it could "
        f"run code{f': it names {shown}' if shown else ''}. {advice}"
    )


def one_line(error: Exception) -> str:
    """Return the beginning of what torch or DeepSpeed says, without control characters."""
    if isinstance(error, UnpicklingError):  # whose text tells how to read it nevertheless
        return "a file holds more than tensors and plain values, and reading it could run code"
    text = " ".join(str(error).split()) or type(error).__name__
    shown = ascii(text)[1:-1].rstrip(".")
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
