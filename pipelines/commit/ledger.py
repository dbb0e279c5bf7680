"""The ledger: which files the generation in the making consists of, written before it is made.

It exists from the moment a generation's files are decided until the manifest has the generation.
Whoever continues after a crash makes exactly that generation first, whatever has arrived meanwhile;
so every file is in one generation. Only the holder of the dataset's lock writes it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pipelines.read.files import InputFile
from shards.errors import DamageError
from shards.records import from_json, sealed, unsealed
from shards.storage.files import read_json, write_json
from shards.storage.remote import AnyPath

NAME = "ledger.json"


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """The generation in the making."""

    number: int
    """Of the manifest that will have it."""
    inputs: tuple[Any, ...]
    """Its files, as JSON."""

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ValueError(f"number is {self.number}, of no manifest")

    @property
    def files(self) -> list[InputFile]:
        """Its files."""
        return [from_json(InputFile, file, where="ledger") for file in self.inputs]


@dataclass(frozen=True)
class Ledger:
    """The ledger of the dataset in a folder."""

    output: AnyPath

    def open_entry(self, number: int) -> LedgerEntry | None:
        """Return the generation that was begun and is not in the manifest yet.

        Args:
            number: The manifest number of its last generation; 0 if there is none.

        Raises:
            DamageError: The ledger is damaged.
        """
        path = self.output / NAME
        if not path.exists():
            return None
        try:
            entry = unsealed(LedgerEntry, read_json(path), where=str(path))
            _ = entry.files
        except ValueError as error:
            raise DamageError(
                f"{path} is damaged ({error}). It names the files of the generation that was being "
                "made. Delete it: those files count as new again, and what was mapped is kept"
            ) from error
        if entry.number > number:
            return entry
        self.close()  # the last run was killed between its manifest and this
        return None

    def name(self, number: int, files: Sequence[InputFile]) -> LedgerEntry:
        """Write down that the manifest of a number is to have a generation of these files."""
        inputs = sorted(files, key=lambda file: file.name)
        entry = LedgerEntry(number=number, inputs=tuple(map(asdict, inputs)))
        write_json(self.output / NAME, sealed(entry))
        return entry

    def close(self) -> None:
        """Forget the entry: its generation is in the manifest."""
        (self.output / NAME).unlink(missing_ok=True)
