"""Files in the safetensors format (huggingface/safetensors), of which nothing can run code.

    8 bytes     N, little-endian
    N bytes     JSON: dtype, shape and data_offsets of each tensor by name; padded with spaces
    the rest    the tensors end to end, row by row, little-endian; offsets count from here

A model is `model.safetensors`, or several files and `model.safetensors.index.json`, which names the
file of each tensor. Tensors are read and written one at a time.
"""

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shards.errors import DamageError, UserError
from shards.storage.files import atomic_write, size
from trainer.checkpoints.torch_file import one_line
from trainer.json_file import read_object

WHOLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
_NAMES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}
_METADATA = "__metadata__"
_LENGTH = struct.Struct("<Q")
_MOST_VALUES = 2**62
"""Of a tensor, were each length at least 1: torch counts its strides in int64."""
_LONGEST_HEADER = 100_000_000
"""Bytes, as in the safetensors library."""


def write_safetensors(
    path: Path,
    shapes: Mapping[str, torch.Size],
    read: Callable[[str], Tensor],
    *,
    dtype: torch.dtype,
) -> None:
    """Write tensors to a file, whole or not at all.

    Args:
        path: the file.
        shapes: of the tensors by name.
        read: gives the value of a name, with that shape and type.
        dtype: of all tensors.

    Raises:
        UserError: the file cannot be written.
    """
    name_of_dtype = next(name for name, of_name in _NAMES.items() if of_name == dtype)
    # transformers refuses a file that does not say which library's layout it has.
    header: dict[str, Any] = {_METADATA: {"format": "pt"}}
    end = 0
    for name, shape in shapes.items():
        start, end = end, end + prod(shape) * dtype.itemsize
        header[name] = {"dtype": name_of_dtype, "shape": [*shape], "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH.size)
    with atomic_write(path) as handle:
        handle.write(_LENGTH.pack(len(text)) + text)
        for name in shapes:
            handle.write(bytes_of(read(name)))


def bytes_of(value: Tensor) -> Any:  # what Handle.write takes
    """Return the bytes of a tensor, row by row, without copying one that is laid out so."""
    return value.contiguous().view(-1).view(torch.uint8).numpy()


class SafeTensors(Mapping[str, Tensor]):
    """The tensors of a file or a folder by name; each is read when it is asked for."""

    def __init__(self, path: Path) -> None:
        """Open a file, or a folder that holds `WHOLE` or `INDEX`.

        Raises:
            UserError: there is none, or it holds values of a type that no model of ours has.
            DamageError: a file is cut short, or is none of this format.
        """
        self._tensors: dict[str, _Stored] = {}
        for file in _files(path):
            self._tensors.update(_stored(file))

    def __getitem__(self, name: str) -> Tensor:
        """Return a tensor on the CPU, in the file's type."""
        return self._tensors[name].read()

    @property
    def shapes(self) -> Mapping[str, torch.Size]:
        """Of the tensors."""
        return {name: stored.shape for name, stored in self._tensors.items()}

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._tensors)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._tensors)


class _Stored:
    """A tensor in a file."""

    def __init__(self, file: np.memmap[Any, Any], start: int, entry: Mapping[str, Any]) -> None:
        self._dtype = _NAMES.get(entry["dtype"])
        self._name_of_dtype = entry["dtype"]
        lengths = entry["shape"]
        if prod(length or 1 for length in lengths) > _MOST_VALUES or min(lengths, default=0) < 0:
            raise ValueError(f"{lengths} is no shape")
        self.shape = torch.Size(lengths)
        first, end = entry["data_offsets"]
        if not 0 <= first <= end <= file.size - start:
            raise ValueError(f"bytes {first} to {end} lie outside")
        if self._dtype is not None and prod(self.shape) * self._dtype.itemsize != end - first:
            raise ValueError(f"{end - first} bytes are no {entry['dtype']} of {lengths}")
        self._bytes = file[start + first : start + end]
        self._path = file.filename

    def read(self) -> Tensor:
        """Return the tensor.

        Raises:
            UserError: its type is none of floating point.
        """
        if self._dtype is None:
            raise UserError(
                f"{self._path} has values of type {self._name_of_dtype!a}; expected weights "
                f"of a type among {', '.join(_NAMES)}: save it in one of these, without "
                "quantization."
            )
        if not self._bytes.size:  # which has no stride that another type could be seen through
            return torch.empty(self.shape, dtype=self._dtype)
        return torch.from_numpy(np.array(self._bytes)).view(self._dtype).view(self.shape)


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    """Explain what goes wrong in the block, which uses JSON that may have any shape."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise DamageError(
            f"{path} is no file of safetensors, or was damaged ({one_line(error)}): copy it again."
        ) from error


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if (path / INDEX).is_file():
        with _damage_told(path / INDEX):
            names = sorted(set(read_object(path / INDEX)["weight_map"].values()))
            if not names or any(Path(name).name != name for name in names):
                raise ValueError("weight_map names no files beside it")
        return [path / name for name in names]
    if (path / WHOLE).is_file():
        return [path / WHOLE]
    raise UserError(f"{path} holds neither {WHOLE} nor {INDEX}: give a folder that does.")


def _stored(path: Path) -> dict[str, _Stored]:
    if size(path) < _LENGTH.size:
        raise DamageError(f"{path} was cut short: copy it again.")
    file = np.memmap(path, np.uint8, mode="r")
    (length,) = _LENGTH.unpack(file[: _LENGTH.size].tobytes())
    start = _LENGTH.size + length
    if length > _LONGEST_HEADER or start > file.size:
        raise DamageError(f"{path} is no safetensors file, or was cut short: copy it again.")
    with _damage_told(path):
        header = json.loads(file[_LENGTH.size : start].tobytes())
        return {
            name: _Stored(file, start, entry) for name, entry in header.items() if name != _METADATA
        }
