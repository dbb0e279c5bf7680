"""The first records of each source, read before the map: can any of them be read at all?

A wrong field, format or encoding makes every record of a source unreadable, and a map of hours
would only count them. So a source is looked at until one of its records becomes a document, be it
one that a rule leaves out; mostly that is the first one. If MAX_RECORDS in a row do not, or all
there are, the run ends and names the fields that they have.

Fields that options name, such as those of --provenance, have to be in one of the first records as
well (wanted.py).

The records come from LANES places of the source in turn, each a run of its files or, where it has
fewer, a part of one that can be cut: what is broken at the beginning does not stop a run whose
other text is good. A share of unreadable records that was allowed by name is for the map to count.
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
from pipelines.execute.deaths import ATTEMPT
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
"""Of a source, none of which can be read, after which the run ends."""

MAX_BYTES = 256 << 20
"""Bytes of such records after which a source is left to the map, which reads it side by side."""

MAX_FILES = 1000
"""Files of a source that are looked at, spread over all of them."""

LANES = 4
"""Places of a source that are read in turn."""


@dataclass(frozen=True, kw_only=True)
class FirstFiles:
    """The records that are checked."""

    job: Job
    files: Sequence[InputFile]
    """Of all sources, by source and path; at most MAX_FILES of each are read."""
    known: frozenset[str] = frozenset()
    """Sources that the dataset has already: of these a few bad records stop no run."""

    def unmapped(self, fingerprints: Mapping[str, Any]) -> "FirstFiles":
        """Return this without the sources whose first item an earlier run has finished.

        Args:
            fingerprints: Fingerprints instead of the options that are paths.
        """
        groups = _by_source(self.files)
        new = [own for own in groups if not _is_mapped(own, self.job, fingerprints)]
        return replace(self, files=[*itertools.chain.from_iterable(new)])


def check_first_records(
    first: FirstFiles, *, call: Callable[[Callable[[FirstFiles], list[str]], FirstFiles], list[str]]
) -> None:
    """Check that something can be read of each source, and that it has what options name.

    Args:
        first: The records that are checked.
        call: Calls a function where items run, as Runner.call does.

    Raises:
        UserError: Nothing can be read of a source, it lacks a field that an option names, or a
            file is in another format than it should be. The message says what its records hold.
    """
    chosen = [file for own in _by_source(first.files) for file in _spread(own)]
    for warning in call(_look, replace(first, files=chosen)) if chosen else []:
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


def _look(first: FirstFiles) -> list[str]:
    """Read the first records of the files; if a worker died of it, the map finds the file."""
    return [] if ATTEMPT.deaths else check_sources(first)


def check_sources(first: FirstFiles) -> list[str]:
    """Read the first records of each source in this process, and return the warnings.

    Raises:
        UserError: As `check_first_records`.
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
            if options.watch:  # it may still be written
                continue
            raise
        is_whole = found.records < MAX_RECORDS
        is_allowed = options.max_reject_rate > Options.max_reject_rate or source in first.known
        if not (is_read or _may_be_unread(options) or (is_whole and is_allowed)):
            raise found.error(whole=is_whole)
    return [*check_fields(all_wanted, known=first.known), *_odd_files(first)]


def _odd_files(first: FirstFiles) -> Iterator[str]:
    """Yield a warning for each source whose first file seems to hold other documents than it has.

    Its lines may be parts of one text, or its only object a table of which one text is read.
    """
    for own in [] if first.job.options.watch else _by_source(first.files):
        input_format = first.job.corpora[own[0].source].input_format
        peek = Peek(own[0].path, input_format)
        if input_format.format == "auto" and peek.looks_wrapped:
            yield (
                f"each line of {shown(peek.path)} becomes a document, and they look like parts of "
                "one text: give --format file to make a document of each file, or --format lines "
                "if each line is one"
            )
        if peek.is_by_columns:
            yield f"{shown(peek.path)} is one object of many records. {BY_COLUMNS}"


def _may_be_unread(options: Options) -> bool:
    """Return whether a run continues if none of its records can be read."""
    return options.watch or options.max_reject_rate >= 1


def _read_first(
    corpus: Corpus, files: Sequence[InputFile], found: UnreadableSource, wanted: FieldCheck
) -> bool:
    """Read the first records of a source until one can be read, and has what options name.

    They are MAX_RECORDS, or fewer if there are no more.

    Args:
        corpus: The corpus of the source.
        files: Of the source, by path.
        found: Collects the records that cannot be read.
        wanted: Collects the records that can be read.

    Returns:
        Whether one can be read, or may be one of those that were not looked at.

    Raises:
        UserError: A file is in another format than it should be, or code of the corpus fails.
    """
    batcher = DocumentBatcher(corpus)
    is_read = False
    for split, item in _in_turn(corpus, files):
        verdict = batcher.to_batch([BatchPiece(split, [item])])
        reasons = verdict.reasons.to_pylist()
        if QUARANTINE_REASONS.issuperset(reasons):
            found.add(split.path, item, reasons[0] if reasons else "missing-field")
        else:
            is_read = True
            wanted.look(split.path, item, verdict.batch)
        if is_read and not wanted.is_open:
            return True
        if found.records + wanted.records >= MAX_RECORDS:
            return is_read
        if found.bytes + wanted.bytes >= MAX_BYTES:
            return True
    # Of more files there may be others that hold something.
    return is_read or not found.records or len(files) >= MAX_FILES


def _in_turn(
    corpus: Corpus, files: Sequence[InputFile]
) -> Iterator[tuple[FileSplit, Record | Damage]]:
    """Yield records from LANES runs of the files, one of each in turn."""
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
    """Yield the splits of files, one after another."""
    for file in files:
        Peek(file.path, corpus.input_format).check()
        yield from splits(file, corpus.input_format, split_bytes=max(1, file.bytes))


def _cut(corpus: Corpus, files: Sequence[InputFile]) -> Iterator[FileSplit]:
    """Yield the splits of fewer than LANES files, so many of each that there are LANES at least."""
    parts = -(-LANES // len(files))
    for file in files:
        Peek(file.path, corpus.input_format).check()
        yield from splits(file, corpus.input_format, split_bytes=max(1, -(-file.bytes // parts)))


def _items(
    corpus: Corpus, place: Iterator[FileSplit]
) -> Iterator[tuple[FileSplit, Record | Damage]]:
    for split in place:
        for item in corpus.reader(
            split, all_columns=True
        ):  # a message names all fields that are there
            yield split, item
