"""A copy in memory of what torch saves to a file, so that training may change the original.

It is made as torch makes a file: by pickling, with the bytes of tensors put aside. What shares
memory in the original shares it in the copy, which therefore gives the same file.
"""

import io
import pickle
from typing import Any

from torch import UntypedStorage
from torch.storage import TypedStorage


class Snapshot:
    """A value taken apart, to be copied or not."""

    def __init__(self, value: Any) -> None:
        """Take a value apart; nothing of its tensors is copied yet."""
        stream = io.BytesIO()
        pickler = _Pickler(stream)
        pickler.dump(value)
        self._content = stream.getvalue()
        self._storages = pickler.storages

    @property
    def num_bytes(self) -> int:
        """What a copy takes."""
        return len(self._content) + sum(storage.nbytes() for storage in self._storages)

    def copy(self) -> Any:
        """Return a copy of the value, its tensors on the CPU."""
        untyped: Any = UntypedStorage  # torch gives its arguments no types
        copies = [
            untyped(storage.nbytes(), device="cpu").copy_(storage) for storage in self._storages
        ]
        return _Unpickler(io.BytesIO(self._content), copies).load()


class _Pickler(pickle.Pickler):
    """Puts the bytes of tensors aside, each once."""

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream)
        self.storages: list[UntypedStorage] = []
        self._numbers: dict[int, int] = {}

    def persistent_id(self, value: Any) -> tuple[int, Any] | None:
        """Return number and type of what holds a tensor's bytes; None: it is something else."""
        if isinstance(value, TypedStorage):
            storage, dtype = value._untyped_storage, value.dtype
        elif isinstance(value, UntypedStorage):
            storage, dtype = value, None
        else:
            return None
        number = self._numbers.setdefault(storage._cdata, len(self.storages))
        if number == len(self.storages):
            self.storages.append(storage)
        return number, dtype


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, storages: list[UntypedStorage]) -> None:
        super().__init__(stream)
        self._storages = storages

    def persistent_load(self, pid: tuple[int, Any]) -> Any:
        """Return what holds the bytes of a tensor."""
        number, dtype = pid
        storage: Any = self._storages[number]
        typed: Any = TypedStorage  # torch gives its arguments no types
        return (
            storage if dtype is None else typed(wrap_storage=storage, dtype=dtype, _internal=True)
        )
