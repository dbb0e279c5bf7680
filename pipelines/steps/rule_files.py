"""Small files that define a rule, such as a list of benchmarks or domains, read as a whole."""

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
    """Yield the path and each record of some files, in the order of paths and names.

    Args:
        paths: Files, folders, globs or URLs, as `--input` takes them.
        input_format: How the files are read.

    Raises:
        UserError: A path names nothing, or a file is of another format.
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
    """Log what folders of such files leave out: once, as each worker process reads the files.

    Raises:
        UserError: A path names nothing.
    """
    for path in paths:
        _list(path).log_remarks()


def _list(path: str) -> Listing:
    return list_inputs((path,), pattern=TEXT_FILES, default_name="list")
