"""Checks before processing that the first records of each source can be read.

A wrong field, format or encoding makes every record of a source unreadable, and a run of hours
would only count them. So each source is read until one of its records becomes a document, which may
be dropped later; usually the first record does. If none of the first MAX_RECORDS records does (or
of all records, if there are fewer), the run ends with an error that names the fields of the
records.

Fields that options name, such as those of --provenance, must be in one of the first records too
(field_check.py).

Records are read in turn from LANES places of the source. A place is a group of its files, or a part
of a file if there are fewer files than places. So a damaged beginning does not stop a run whose
remaining text is good. If options allow a share of unreadable records, the processing counts them.
"""

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipelines.corpus.batcher import BatchPiece, DocumentBatcher
from pipelines.corpus.options import Options
from pipelines.corpus.sources import Corpus
from pipelines.corpus.unreadable import UnreadableSource
from pipelines.execute.attempt import ATTEMPT
from pipelines.process.field_check import FieldCheck, check_fields
from pipelines.process.plan import split_items
from pipelines.process.processor import Job
from pipelines.read.files import InputFile
from pipelines.read.formats import splits
from pipelines.read.input_file import shown
from pipelines.read.packs import packs
from pipelines.read.peek import Peek
from pipelines.read.record import Damage, Record
from pipelines.read.shape import BY_COLUMNS
from pipelines.read.split import FileSplit
from pipelines.segments.rows import QUARANTINE_REASONS
from shards.errors import UserError

_LOG = logging.getLogger("corpusmill")

MAX_RECORDS = 1000
"""The number of records of a source after which its check ends, with an error if all are
unreadable."""

MAX_BYTES = 256 << 20
"""The number of bytes of records after which the check of a source ends without an error."""

MAX_FILES = 1000
"""The maximum number of files of a source that are checked, evenly spaced among all files."""

LANES = 4
"""The number of places of a source that are read in turn."""


@dataclass(frozen=True, kw_only=True)
class FirstFiles:
    """The files whose first records are checked."""

    job: Job
    files: Sequence[InputFile]
    """The files of all sources, by source and path; at most MAX_FILES per source are read."""
    known: frozenset[str] = frozenset()
    """The sources that the dataset already has: a few bad records of these sources do not end a
    run."""

    def unmapped(self, fingerprints: Mapping[str, Any]) -> "FirstFiles":
        """Return the files except those of sources whose first item an earlier run has finished.

        Args:
            fingerprints: The fingerprints that replace the values of options that name paths.
        """
        groups = _by_source(self.files)
        new = [own for own in groups if not _is_mapped(own, self.job, fingerprints)]
        return replace(self, files=[*itertools.chain.from_iterable(new)])


def check_first_records(
    first: FirstFiles, *, call: Callable[[Callable[[FirstFiles], list[str]], FirstFiles], list[str]]
) -> None:
    """Check that some records of each source can be read, and have the fields that options name.

    Args:
        first: The files whose first records are checked.
        call: A function that calls a given function in a worker, as Runner.call does.

    Raises:
        UserError: No record of a source can be read, a source lacks a field that an option names,
            or a file has a different format than expected. The message shows what the records have.
    """
    chosen = [file for own in _by_source(first.files) for file in _spread(own)]
    for warning in call(_check_in_worker, replace(first, files=chosen)) if chosen else []:
        _LOG.warning("%s", warning)


def _by_source(files: Iterable[InputFile]) -> list[list[InputFile]]:
    return [[*group] for _, group in itertools.groupby(files, key=lambda file: file.source)]


def _spread(files: Sequence[InputFile]) -> list[InputFile]:
    number = min(MAX_FILES, len(files))
    return [files[index * len(files) // number] for index in range(number)]


def _is_mapped(files: Sequence[InputFile], job: Job, fingerprints: Mapping[str, Any]) -> bool:
    """Return whether an earlier run has finished the first item of a source."""
    input_format, size = job.corpora[files[0].source].input_format, job.options.split_bytes
    Peek(files[0].path, input_format).check()
    chains = (splits(file, input_format, split_bytes=size) for file in files)
    (first,) = split_items([next(packs(chains, split_bytes=size))], job, fingerprints)
    return (job.work / "map" / f"{first.name}.json").exists()


def _check_in_worker(first: FirstFiles) -> list[str]:
    """Return warnings about the first records, but none if a worker has died in this check."""
    return [] if ATTEMPT.deaths else check_sources(first)


def check_sources(first: FirstFiles) -> list[str]:
    """Read the first records of each source in this process, and return warnings.

    Raises:
        UserError: See `check_first_records`.
    """
    options, all_wanted = first.job.options, []
    for own in _by_source(first.files):
        source = own[0].source
        corpus = first.job.corpora[source]
        found, wanted = UnreadableSource(corpus, source), FieldCheck.of(corpus, source)
        all_wanted.append(wanted)
        if _may_be_unread(options) and not wanted.is_open:
            continue
        try:
            is_read = _read_first(corpus, _spread(own), found, wanted)
        except UserError:
            if options.watch:  # the file may still be being written
                continue
            raise
        is_whole = found.records < MAX_RECORDS
        is_allowed = options.max_reject_rate > Options.max_reject_rate or source in first.known
        if not (is_read or _may_be_unread(options) or (is_whole and is_allowed)):
            raise found.error(whole=is_whole)
    return [*check_fields(all_wanted, known=first.known), *_odd_files(first)]


def _odd_files(first: FirstFiles) -> Iterator[str]:
    """Yield a warning for each source whose first file seems to be cut into documents wrongly.

    Its lines may be parts of one text, or its only object may be a table stored by columns.
    """
    for own in [] if first.job.options.watch else _by_source(first.files):
        input_format = first.job.corpora[own[0].source].input_format
        peek = Peek(own[0].path, input_format)
        if input_format.format == "auto" and peek.looks_wrapped:
            yield (
                f"each line of {shown(peek.path)} becomes a document, but the lines look like "
                "parts of one text: give --format file to make one document per file, or --format "
                "lines if each line is a document"
            )
        if peek.is_by_columns:
            yield f"{shown(peek.path)} is one object of many records. {BY_COLUMNS}"


def _may_be_unread(options: Options) -> bool:
    """Return whether a run continues even if no record can be read."""
    return options.watch or options.max_reject_rate >= 1


def _read_first(
    corpus: Corpus, files: Sequence[InputFile], found: UnreadableSource, wanted: FieldCheck
) -> bool:
    """Read records of a source until one can be read and all requested fields are found.

    At most MAX_RECORDS records are read.

    Args:
        corpus: The corpus of the source.
        files: The files of the source, by path.
        found: Collects the records that cannot be read.
        wanted: Collects the fields of the records that can be read.

    Returns:
        Whether a record can be read, or may be among those that were not checked.

    Raises:
        UserError: A file has a different format than expected, or code of the corpus fails.
    """
    batcher = DocumentBatcher(corpus)
    is_read = False
    for split, item in _interleaved(corpus, files):
        result = batcher.to_batch([BatchPiece(split, [item])])
        reasons = result.reasons.to_pylist()
        if QUARANTINE_REASONS.issuperset(reasons):
            found.add(split.path, item, reasons[0] if reasons else "missing-field")
        else:
            is_read = True
            wanted.add(split.path, item, result.batch)
        if is_read and not wanted.is_open:
            return True
        if found.records + wanted.records >= MAX_RECORDS:
            return is_read
        if found.bytes + wanted.bytes >= MAX_BYTES:
            return True
    # If files were left out, they may have readable records.
    return is_read or not found.records or len(files) >= MAX_FILES


def _interleaved(
    corpus: Corpus, files: Sequence[InputFile]
) -> Iterator[tuple[FileSplit, Record | Damage]]:
    """Yield records from LANES places in the files, one from each place in turn."""
    edges = [lane * len(files) // LANES for lane in range(LANES + 1)]
    places: list[Iterator[FileSplit]] = (
        [_whole(corpus, files[start:end]) for start, end in itertools.pairwise(edges)]
        if len(files) >= LANES
        else [iter([split]) for split in _cut(corpus, files)]
    )
    lanes = [_items(corpus, place) for place in places]
    while lanes:
        for lane in [*lanes]:
            item = next(lane, None)
            if item is None:
                lanes.remove(lane)
            else:
                yield item


def _whole(corpus: Corpus, files: Sequence[InputFile]) -> Iterator[FileSplit]:
    """Yield the splits of files, file by file."""
    for file in files:
        Peek(file.path, corpus.input_format).check()
        yield from splits(file, corpus.input_format, split_bytes=max(1, file.bytes))


def _cut(corpus: Corpus, files: Sequence[InputFile]) -> Iterator[FileSplit]:
    """Yield the splits of fewer than LANES files, which have at least LANES splits in all."""
    parts = -(-LANES // len(files))
    for file in files:
        Peek(file.path, corpus.input_format).check()
        yield from splits(file, corpus.input_format, split_bytes=max(1, -(-file.bytes // parts)))


def _items(
    corpus: Corpus, place: Iterator[FileSplit]
) -> Iterator[tuple[FileSplit, Record | Damage]]:
    for split in place:
        for item in corpus.reader(split, all_columns=True):  # so that a message can name all fields
            yield split, item
