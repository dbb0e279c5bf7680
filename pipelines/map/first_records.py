"""The first records of each source, read before the map: can any of them be read at all?

A wrong field, format or encoding makes every record of a source unreadable, and a map of hours
would only count them. So a source is looked at until one of its records becomes a document, be it
one that a rule leaves out; mostly that is the first one. If MOST_RECORDS in a row do not, or all
there are, the run ends with what the records have instead.

The records come from LANES places of the source in turn, each a run of its files: a broken file at
the beginning does not stop a run whose other files are good.
"""

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipelines.corpus.part import MERGE
from pipelines.corpus.sources import Corpus
from pipelines.inputs.files import InputFile
from pipelines.inputs.split import Split
from pipelines.map.attempts import begin_attempt
from pipelines.map.intake import Intake
from pipelines.map.mapper import Job
from pipelines.map.phase import map_tasks
from pipelines.map.unread import Unread
from pipelines.readers.reading import check_head, splits
from pipelines.readers.record import Damage, Record
from pipelines.segments.rows import REJECTS
from shards.errors import UserError

MOST_RECORDS = 1000
"""Of a source, none of which can be read, after which the run ends."""

MOST_BYTES = 256 << 20
"""Bytes of such records after which a source is left to the map, which reads it side by side."""

MOST_FILES = 1000
"""Files of a source that are looked at, spread over all of them."""

LANES = 4
"""Places of a source that are read in turn."""

_Look = tuple[Job, Sequence[InputFile]]
_NOTE = hashlib.sha256(b"the first records").hexdigest()[:24]
"""The name of the attempt, made as those of splits are."""


def check_first(
    files: Sequence[InputFile],
    job: Job,
    facts: Mapping[str, Any],
    *,
    call: Callable[[Callable[[_Look], None], _Look], None],
) -> None:
    """Check that something can be read of each source; one whose first split is mapped is not read.

    Args:
        files: Of all sources, by source and path.
        job: The run.
        facts: Fingerprints in place of the options that are paths.
        call: Calls a function where tasks run, as Runner.call does.

    Raises:
        UserError: Nothing can be read of a source, or a file is in another format than it should
            be. The message says what its records hold.
    """
    if job.options.part == (MERGE,):
        return
    by_source = itertools.groupby(files, key=lambda file: file.source)
    groups = ([*group] for _, group in by_source)
    new = [group for group in groups if not _is_mapped(group[0], job, facts)]
    look(itertools.chain.from_iterable(new), job, call=call)


def look(
    files: Iterable[InputFile],
    job: Job,
    *,
    call: Callable[[Callable[[_Look], None], _Look], None],
) -> None:
    """Read the first records of each source, as check_first does.

    Args:
        files: Of all sources, by source and path.
        job: The run.
        call: As for check_first.

    Raises:
        UserError: As check_first.
    """
    chosen: list[InputFile] = []
    for _, group in itertools.groupby(files, key=lambda file: file.source):
        own = [*group]
        number = min(MOST_FILES, len(own))
        chosen += [own[index * len(own) // number] for index in range(number)]
    if chosen:
        call(_look, (job, chosen))


def _is_mapped(file: InputFile, job: Job, facts: Mapping[str, Any]) -> bool:
    """Return whether the first split of a file is mapped by an earlier run."""
    reading = job.corpora[file.source].reading
    check_head(file, reading)
    tasks = map_tasks(splits(file, reading, split_bytes=job.options.split_bytes)[:1], job, facts)
    return any((job.work / "map" / f"{task.name}.json").exists() for task in tasks)


def _look(arguments: _Look) -> None:
    """Read the first records of the files; a process that died of it does so no more."""
    job, files = arguments
    with begin_attempt(
        job.work, _NOTE, run=job.run, skip_poison=True, description="look at the first records"
    ) as attempt:
        if attempt.deaths:  # the map finds the record that kills
            return
        for source, group in itertools.groupby(files, key=lambda file: file.source):
            if error := unread(job.corpora[source], [*group], source=source):
                raise error


def unread(corpus: Corpus, files: Sequence[InputFile], *, source: str) -> UserError | None:
    """Return what to say of a source of which nothing can be read, None if something can.

    Args:
        corpus: The corpus of the source.
        files: Of the source, by path.
        source: Its name.

    Raises:
        UserError: A file is in another format than it should be, or code of the corpus fails.
    """
    intake, found = Intake(corpus), Unread(corpus, source)
    for split, item in _in_turn(corpus, files):
        reasons = intake.read([item], split).reasons.to_pylist()
        if not REJECTS.issuperset(reasons):
            return None
        found.add(split.path, item, reasons[0] if reasons else "missing-field")
        if found.records >= MOST_RECORDS:
            return found.error(whole=False)
        if found.bytes >= MOST_BYTES:
            return None
    # Of more files there may be others that hold something.
    return found.error(whole=True) if found.records and len(files) < MOST_FILES else None


def _in_turn(corpus: Corpus, files: Sequence[InputFile]) -> Iterator[tuple[Split, Record | Damage]]:
    """Yield records from LANES runs of the files, one of each in turn."""
    edges = [lane * len(files) // LANES for lane in range(LANES + 1)]
    lanes = [
        _items(corpus, files[start:end]) for start, end in itertools.pairwise(edges) if start < end
    ]
    while lanes:
        for lane in [*lanes]:
            item = next(lane, None)
            if item is None:
                lanes.remove(lane)
            else:
                yield item


def _items(corpus: Corpus, files: Sequence[InputFile]) -> Iterator[tuple[Split, Record | Damage]]:
    reading = corpus.reading
    for file in files:
        check_head(file, reading)
        for split in splits(file, reading, split_bytes=max(1, file.bytes)):
            for item in corpus.reader(split):
                yield split, item
