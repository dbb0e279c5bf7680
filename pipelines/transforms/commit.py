"""From the segments of a pipeline to a dataset: dedup, merge and commit as in any run."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from pipelines.commit import existing
from pipelines.commit.commit import input_entries
from pipelines.corpus.options import DATASET, Options, semantic
from pipelines.corpus.recipe import Recipe, always, strings
from pipelines.corpus.sources import Corpus
from pipelines.execute.records import read_record
from pipelines.execute.runner import level_kept
from pipelines.job.append import check_base, read_base
from pipelines.job.build import Build, started
from pipelines.map.mapper import MapRecord, SplitRecord, segment_versions
from pipelines.read.input_format import InputFormat
from pipelines.segments.segment import Segment
from pipelines.transforms.collect import Collected, Columns, Sink
from pipelines.transforms.firing import Firing
from shards import manifest as manifests
from shards.errors import UserError
from shards.manifest import WORK, Manifest, lock_dataset
from shards.records import sealed
from shards.storage.files import crc32c_of, file_names, write_json
from shards.storage.remote import AnyPath

_LOG = logging.getLogger("corpusmill")

ROWS = "rows"
"""The path of documents that come from no file."""


def _unread(*_: object) -> tuple[()]:
    """Stand for what makes documents: no command reads for a pipeline."""
    raise NotImplementedError


RECIPE = Recipe(
    name="pipeline",
    about="What a pipeline of pipelines.transforms handed to WriteDataset.",
    pattern=(),
    options=Options,
    reading=always(InputFormat(text_fields=("text",))),
    provenance=strings(),
    documents=_unread,
)
"""The corpus of a dataset that a pipeline made: a name for it, and nothing to read."""


@dataclass(frozen=True, kw_only=True)
class Notes:
    """All that a pipeline wrote."""

    segments: tuple[Collected, ...]
    splits: tuple[SplitRecord, ...]
    """What it read of corpora."""

    @classmethod
    def of(cls, records: Iterable[Collected | SplitRecord]) -> "Notes":
        """Return records in any order as notes, which do not depend on it."""
        mixed = [*records]
        segments = [record for record in mixed if isinstance(record, Collected)]
        splits = [record for record in mixed if isinstance(record, SplitRecord)]
        return cls(
            segments=tuple(sorted(segments, key=_rank)),
            splits=tuple(sorted(splits, key=lambda one: (one.source, one.relative, one.start))),
        )

    def digests(self) -> dict[str, str]:
        """Return the hash of each source's rows: the same however they were spread."""
        sums: defaultdict[str, int] = defaultdict(int)
        for one in self.segments:
            sums[one.source] = (sums[one.source] + int(one.digest, 16)) % 2**64
        return {source: f"{sums[source]:016x}" for source in sorted(sums)}


def _rank(one: Collected) -> tuple[str, bool, str]:
    # Those with documents first: the columns of a source's shards are those of its first segment.
    return one.source, not one.segment.documents, one.segment.stem


def note(sink: Sink, notes: Notes) -> None:
    """Write notes where `noted` finds them."""
    write_json(_path(sink), sealed(notes))


def noted(sink: Sink) -> Notes | None:
    """Return the notes of a pipeline, None if it has not finished."""
    path = _path(sink)
    return read_record(Notes, path) if path.exists() else None


def nothing_noted(options: Options) -> UserError:
    """Return the error for a commit of what no pipeline has noted."""
    message = (
        f"there is nothing to commit for {options.output}: run the pipeline to its end first, with "
        "WriteDataset(…, commit=False)"
    )
    if (options.output / manifests.NAME).exists():
        message += (
            ". If it has run, another WriteDataset with the same output has made its dataset since "
            "and removed what this one wrote: give each an output of its own"
        )
    return UserError(message)


def _path(sink: Sink) -> AnyPath:
    return sink.options.output / WORK / "map" / f"{sink.run}.json"


def commit(sink: Sink, notes: Notes) -> Manifest:
    """Make the dataset of all that a pipeline wrote, and return its manifest.

    Args:
        sink: Of the pipeline.
        notes: What it wrote.

    Raises:
        UserError: It cannot be made; the message says why and what to do.
    """
    _check_splits(notes.splits)
    options = sink.options
    with lock_dataset(options.output), _building(sink, notes) as build:
        build.semantic[_DOCUMENTS] = notes.digests()
        records = _records(notes, _versions(sink))
        if made := _made_before(build, records):
            build.clean_up()
            return made
        check_new(options)
        _check_there(notes.segments, build.work / "map")
        return build.make_of(records)


def commit_firing(sink: Sink, notes: Notes, firing: Firing) -> Manifest | None:
    """Make the generation of what a window had when it fired, once.

    An attempt that is repeated finds its generation. Where it has other rows than the attempt
    before, as after a restart rows may be early that were late, what is new of them becomes a
    generation too. Another commit is waited for.

    Args:
        sink: Of the pipeline.
        notes: What it wrote.
        firing: Of the window.

    Returns:
        The manifest; None if there was nothing to do.

    Raises:
        UserError: It cannot be made; the message says why and what to do.
    """
    output = sink.options.output
    with lock_dataset(output, wait=True):
        base, folder, made = read_base(output), output / WORK / "map", None
        new = _not_taken(notes, firing, sink, base=base) if base else notes
        if new.segments:
            _check_there(new.segments, folder)
            made = _grown(sink, new, firing, base=base)
        if not sink.options.keep_segments:
            _remove_segments(notes, firing, folder)
    return made


def _grown(sink: Sink, notes: Notes, firing: Firing, *, base: Manifest | None) -> Manifest:
    begun = [one.begun for one in notes.segments]
    with _building(sink, notes) as build:
        check_base(build, base and _without_documents(base))
        return build.grow_by(_of_firing(notes, firing, sink), base=base, arrivals=begun)


def _of_firing(notes: Notes, firing: Firing, sink: Sink) -> list[MapRecord]:
    return [
        replace(one, splits=tuple(replace(rows, relative=firing.path) for rows in one.splits))
        for one in _records(notes, _versions(sink))
    ]


def check_grows(sink: Sink) -> None:
    """Check that the output holds a dataset that windows can be added to, or none.

    Raises:
        UserError: It holds another.
    """
    output = sink.options.output
    base = read_base(output)
    if base is None:
        return
    advice = "Give the options that it was made with, or another output"
    existing.check_corpus(base, RECIPE.name, output=output, advice=advice)
    options = _without_documents(base)
    existing.check_options(options, semantic_options(sink), output=output, advice=advice)


@contextmanager
def _building(sink: Sink, notes: Notes) -> Iterator[Build]:
    """Yield a run for what a pipeline wrote, for who holds the lock on the output."""
    _check_columns(notes.segments)
    corpus = Corpus(__name__, sink.options)
    sources = sorted({one.source for one in notes.segments})
    corpora = dict.fromkeys(sources, corpus)
    with level_kept(), started(corpus, corpora, files=[]) as build:
        build.job = replace(build.job, versions=_versions(sink))
        build.shards = _num_shards(notes, sink.options.shard_tokens)
        build.semantic = semantic_options(sink)
        yield build


_DOCUMENTS = "documents"
"""The semantic option that says of which rows a bounded pipeline made its dataset."""


def semantic_options(sink: Sink) -> dict[str, Any]:
    """Return what all generations of a dataset have in common."""
    options = sink.options
    return {
        **semantic(options, {}, decides=(DATASET,)),
        "tokenizer": sink.tokenizer,
        "dedup": options.dedup,
        "keep_dropped": options.keep_dropped,
        "metrics": [field.name for field in sink.metrics],
    }


def _without_documents(base: Manifest) -> Manifest:
    options = {name: value for name, value in base.options.items() if name != _DOCUMENTS}
    return replace(base, options=options)


def _versions(sink: Sink) -> dict[str, str]:
    return segment_versions({"tokenizer": sink.engine}, {})


def _not_taken(notes: Notes, firing: Firing, sink: Sink, *, base: Manifest) -> Notes:
    """Return notes without what generations of the window have, by attempts before."""
    inputs = {one for generation in base.generations for one in generation.inputs}
    of_window = {one for one in inputs if one.path.startswith(firing.window)}
    if of_window.issuperset(input_entries(_of_firing(notes, firing, sink))):
        return replace(notes, segments=())
    if not of_window:
        return notes
    if any(one.path == firing.path for one in of_window):
        _LOG.warning(
            "%s has other rows than when an attempt before committed it: they are added in a "
            "further generation, where --dedup exact or minhash knows those that are there already",
            firing.path,
        )
    # Only a commit deletes segments of a window that is open.
    names = file_names(sink.options.output / WORK / "map")
    left = (one for one in notes.segments if f"{one.segment.stem}.audit" in names)
    return replace(notes, segments=tuple(left))


def _remove_segments(notes: Notes, firing: Firing, folder: AnyPath) -> None:
    """Delete the segments of a generation that is made, and those that no firing takes any more."""
    taken = {one.segment.stem for one in notes.segments}
    for name in file_names(folder):
        if name.partition(".")[0] in taken or firing.outlives(name):
            (folder / name).unlink(missing_ok=True)


def check_new(options: Options) -> None:
    """Check that the output holds no dataset, unless it is to be replaced."""
    if (options.output / manifests.NAME).exists() and not options.overwrite:
        raise UserError(
            f"{options.output} holds a dataset already: give WriteDataset another output, or "
            "overwrite=True to replace it"
        )


def _made_before(build: Build, records: Sequence[MapRecord]) -> Manifest | None:
    """Return the manifest if an attempt before got that far: engines may repeat the last step."""
    if not (build.output / manifests.NAME).exists():
        return None
    manifest = manifests.read_manifest(build.output)
    if manifest.removals or manifest.corpus != build.corpus.recipe.name:
        return None
    made_of = [one for generation in manifest.generations for one in generation.inputs]
    found = manifest.options, manifest.libraries, made_of
    asked = build.semantic, build.job.versions, [*input_entries(records)]
    return manifest if found == asked else None


def _num_shards(notes: Notes, shard_tokens: int) -> dict[str, int]:
    """Return the shards of each source: the least power of two, by its tokens before dedup.

    How many tokens segments hold depends on which duplicates met in one.
    """
    tokens: defaultdict[str, int] = defaultdict(int)
    longest: defaultdict[str, int] = defaultdict(lambda: shard_tokens)
    rows: defaultdict[str, int] = defaultdict(int)
    for one in notes.segments:
        tallies = [tally for tally in one.segment.tallies if tally.tokens]
        tokens[one.source] += sum(tally.tokens for tally in tallies)
        rows[one.source] += sum(tally.rows for tally in tallies)
        longest[one.source] = max(longest[one.source], one.segment.longest)
    return {
        source: min(
            1 << (-(-total // longest[source]) - 1).bit_length(),
            1 << (rows[source] - 1).bit_length(),
        )
        for source, total in tokens.items()
        if total
    }


def _records(notes: Notes, versions: dict[str, str]) -> list[MapRecord]:
    """Return the records of a map that left these segments, one for each source."""
    segments: defaultdict[str, list[Segment]] = defaultdict(list)
    for one in notes.segments:
        segments[one.source].append(one.segment)
    splits: defaultdict[str, list[SplitRecord]] = defaultdict(list)
    for split in notes.splits:
        splits[split.source].append(split)
    digests = notes.digests()
    return [
        MapRecord(
            splits=tuple(
                splits[source] or [_of_rows(source, segments[source], digest=digests[source])]
            ),
            versions=versions,
            segments=tuple(segments[source]),
        )
        for source in sorted({*segments, *splits})
    ]


def _of_rows(source: str, segments: Sequence[Segment], *, digest: str) -> SplitRecord:
    """Return what stands for the split of a source that has no files."""
    num_bytes = sum(tally.bytes for segment in segments for tally in segment.tallies)
    return SplitRecord(
        source=source,
        relative=ROWS,
        start=0,
        end=num_bytes,
        file_bytes=num_bytes,
        crc32c=crc32c_of(digest.encode()),
    )


def _check_splits(read: Sequence[SplitRecord]) -> None:
    """Check that no file was read twice; the splits of one are side by side."""
    for before, split in pairwise(read):
        place = split.source, split.relative, split.start
        if place == (before.source, before.relative, before.start):
            raise UserError(
                f"{split.relative} of the input {split.source!r} was read twice, and its documents "
                "would count twice: give WriteDataset one ReadCorpus for each file; for another "
                "file of the same name, give each ReadCorpus a name of its own, input='NAME=PATH'"
            )


def _check_there(written: Sequence[Collected], folder: AnyPath) -> None:
    """Check that all segments still have their files."""
    names = file_names(folder)
    needed = (f"{one.segment.stem}.{kind}" for one in written for kind in one.segment.files)
    gone = next((name for name in needed if name not in names), None)
    if gone is not None:
        raise UserError(
            f"{folder / gone} is gone, which this pipeline wrote: another WriteDataset with the "
            "same output has made its dataset since, and removed it. Give each an output of its "
            "own, and run this pipeline again"
        )


def _check_columns(written: Iterable[Collected]) -> None:
    """Check that all documents of a source have the same columns."""
    first: dict[str, Columns] = {}
    for one in written:
        if one.columns and first.setdefault(one.source, one.columns) != one.columns:
            raise _unlike(one.source, dict(first[one.source]), dict(one.columns))


def _unlike(source: str, columns: dict[str, str], others: dict[str, str]) -> UserError:
    """Return the error for documents of one source with other columns, or in another order."""
    documents, own = f"documents of the source {source!r}", "`source` of their own"
    if differing := columns.keys() ^ others.keys():
        return UserError(
            f"some {documents} have a column {min(differing)!r} and some have not: a source's "
            f"documents have the same columns. Add it to all or none, or give them a {own}"
        )
    if unlike := [name for name in columns if columns[name] != others[name]]:
        return UserError(
            f"the {documents} have a column {unlike[0]!r} of two types, {columns[unlike[0]]} and "
            f"{others[unlike[0]]}: make it one, or give them a {own}"
        )
    return UserError(
        f"the {documents} have their columns in two orders: {', '.join(columns)}; and "
        f"{', '.join(others)}. Give all the same"
    )
