"""The ledger, which lists the files of the next generation before that generation is made.

The ledger exists from the moment when a generation's files are chosen until the manifest contains
the generation. After a crash, the next run first makes exactly this generation, even if more files
have arrived, so every file belongs to one generation. Only the process that holds the dataset's
lock writes the ledger.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pipelines.read.files import InputFile
from shards.errors import DamageError
from shards.records import from_json, seal, unseal
from shards.storage.files import read_json, write_json
from shards.storage.remote import AnyPath

NAME = "ledger.json"


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """A generation that was started."""

    number: int
    """The number of the manifest that will contain the generation."""
    inputs: tuple[Any, ...]
    """The input files of the generation, as JSON."""

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ValueError(f"number is {self.number}; manifests begin at 1")

    @property
    def files(self) -> list[InputFile]:
        """The input files of the generation."""
        return [from_json(InputFile, file, where="ledger") for file in self.inputs]


@dataclass(frozen=True)
class Ledger:
    """The ledger of the dataset in a folder."""

    output: AnyPath

    def unfinished_entry(self, number: int) -> LedgerEntry | None:
        """Return the generation that was started but is not in the manifest yet.

        Args:
            number: The manifest number of the dataset's last generation; 0 if there is none.

        Raises:
            DamageError: The ledger is damaged.
        """
        path = self.output / NAME
        if not path.exists():
            return None
        try:
            entry = unseal(LedgerEntry, read_json(path), where=str(path))
            _ = entry.files
        except ValueError as error:
            raise DamageError(
                f"{path} is damaged ({error}). It names the files of a generation that was "
                "started. Delete it: those files then count as new again, and their segments are "
                "kept"
            ) from error
        if entry.number > number:
            return entry
        self.close()  # the last run was killed after writing the manifest
        return None

    def start(self, number: int, files: Sequence[InputFile]) -> LedgerEntry:
        """Record that the manifest with this number will have a generation with these files."""
        inputs = sorted(files, key=lambda file: file.name)
        entry = LedgerEntry(number=number, inputs=tuple(map(asdict, inputs)))
        write_json(self.output / NAME, seal(entry))
        return entry

    def close(self) -> None:
        """Delete the ledger, whose generation is in the manifest or was given up."""
        (self.output / NAME).unlink(missing_ok=True)
