"""Reads small files that define a rule, such as a list of benchmarks or domains."""

from collections.abc import Iterator, Sequence

from pipelines.read.files import list_inputs
from pipelines.read.formats import open_reader, splits
from pipelines.read.input_format import InputFormat
from pipelines.read.listing import Listing
from pipelines.read.names import TEXT_FILES
from pipelines.read.peek import Peek
from pipelines.read.record import Damage, Record


def read_rule_files(
    paths: Sequence[str], input_format: InputFormat
) -> Iterator[tuple[str, Record | Damage]]:
    """Yield each record of some files with its path, in the order of paths and file names.

    Args:
        paths: Files, folders, globs or URLs, as in `--input`.
        input_format: The format of the files.

    Raises:
        UserError: A path does not exist, or a file does not have this format.
    """
    for path in paths:
        listing = _list(path)
        listing.check()
        for file in listing.files:
            Peek(file.path, input_format).check()
            for split in splits(file, input_format, split_bytes=max(file.bytes, 1)):
                for item in open_reader(split, input_format):
                    yield file.path, item


def log_remarks(paths: Sequence[str]) -> None:
    """Log which files of folders are skipped; the driver does so once for all workers.

    Raises:
        UserError: A path does not exist.
    """
    for path in paths:
        _list(path).log_remarks()


def _list(path: str) -> Listing:
    return list_inputs((path,), pattern=TEXT_FILES, default_name="list")
