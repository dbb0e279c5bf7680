"""The transform that reads a corpus as batches of documents, as the corpus's command does."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from os import PathLike
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.corpus import sources
from pipelines.corpus.batcher import BatchPiece, DocumentBatcher, add_raw_heads, group_records
from pipelines.corpus.input_counts import InputCounts
from pipelines.corpus.keywords import options_of_call
from pipelines.corpus.options import Options
from pipelines.corpus.spec import find_corpus, load_spec
from pipelines.corpus.versions import segment_versions
from pipelines.execute import beam
from pipelines.execute.beam import PBegin
from pipelines.process.processor import SplitRecord
from pipelines.read.formats import splits
from pipelines.read.input_file import shown
from pipelines.read.packs import packs
from pipelines.read.peek import Peek
from pipelines.read.split import FileSplit
from pipelines.segments.rows import (
    DROPPED,
    KEPT,
    PATH,
    QUARANTINED,
    RAW_HEAD,
    REASON,
    SOURCE,
    FilterResult,
    constant_column,
)
from pipelines.steps.outputs import CorpusOutputs, increment_counter, tagged_outputs
from pipelines.steps.spec import check_worker_facts
from pipelines.steps.step import split_result
from shards.commands.spelling import expected
from shards.errors import UserError

RESERVED_COLUMNS = frozenset({SOURCE.name, PATH.name, REASON.name, RAW_HEAD.name})
"""The columns that transforms add, which a corpus must not have."""

READING_OPTIONS = ("input", "sample", "seed", "split_bytes", "skip_unreadable")
"""The options of all corpora that determine which records are read."""

_SPLITS = "splits"


class ReadCorpus(beam.PTransform[PBegin, CorpusOutputs]):
    """Reads the documents of a corpus as the corpus's command does.

    Files are cut into splits, which are distributed among the workers. The batches have the columns
    in docs/own.md, followed by those that the corpus keeps with each document.
    """

    def __init__(
        self,
        corpus: str,
        *,
        input: str | PathLike[str] | Sequence[str | PathLike[str]] | Mapping[str, Any] = (),
        **options: Any,
    ) -> None:
        """List the files, and check that they can be read.

        Args:
            corpus: A corpus of this package ("wudao") or of an installed package, or the module of
                a corpus.
            input: One or several paths, URLs or globs, as in --input; or a mapping from names to
                paths; by default the corpus's bundled sample.
            options: The options of the corpus, named as their flags with `_` for `-`.

        Raises:
            UserError: The corpus or an option does not exist, a value is not valid, or a file
                cannot be read.
        """
        super().__init__()
        module = find_corpus(corpus, where=f"ReadCorpus({corpus!r})")
        spec = load_spec(module)
        _check_names(corpus, spec.options, options)
        given = {"input": input, **options}
        values = options_of_call(spec.options, given, module=module)
        if not values.input:
            if spec.sample is None:
                raise UserError(
                    f"ReadCorpus({corpus!r}) has no input, and the corpus has no sample: give "
                    "input=PATH"
                )
            values = replace(values, input=(str(spec.sample),))
        listing, self._corpora = sources.list_corpus_files(module, values)
        chains = []
        for file in listing.files:
            input_format = self._corpora[file.source].input_format
            Peek(file.path, input_format).check()
            chains.append(splits(file, input_format, split_bytes=values.split_bytes))
        self._packs = [*packs(chains, split_bytes=values.split_bytes)]
        for name, one in self._corpora.items():
            if taken := sorted(RESERVED_COLUMNS & {*one.columns}):
                raise UserError(
                    f"the corpus of the input {name!r} has a column {taken[0]!r}, but transforms "
                    "add a column of this name: rename it in the corpus's `provenance`"
                )

    def expand(self, pipeline: PBegin) -> Any:
        """Read the splits and return the four outputs."""
        read_splits = beam.ParDo(ReadDoFn(self._corpora)).with_output_types(
            pa.RecordBatch,
            dropped=pa.RecordBatch,
            quarantined=pa.RecordBatch,
            splits=SplitRecord,
        )
        tagged = (
            pipeline
            | "List splits" >> beam.Create(self._packs, reshuffle=False)
            | "Spread over workers" >> beam.Reshuffle()
            | "Read splits" >> read_splits.with_outputs(DROPPED, QUARANTINED, _SPLITS, main=KEPT)
        )
        return CorpusOutputs(tagged[KEPT], tagged[DROPPED], tagged[QUARANTINED], tagged[_SPLITS])


def _check_names(corpus: str, kind: type[Options], given: Mapping[str, Any]) -> None:
    own = {field.name for field in fields(kind)} - {field.name for field in fields(Options)}
    for name in given:
        if name not in own and name not in READING_OPTIONS:
            known = sorted({*own, *READING_OPTIONS})
            raise UserError(
                f"ReadCorpus({corpus!r}) has no option {name!r}: {expected(name, known)}. Other "
                "flags of the command are arguments of other transforms"
            )


class ReadDoFn(beam.DoFn):
    """Reads the documents of splits in a worker."""

    def __init__(self, corpora: Mapping[str, sources.Corpus]) -> None:
        self._corpora = corpora
        self._versions = segment_versions({}, corpora)

    def setup(self) -> None:
        """Import the corpora, after checking that they are the same as in the driver."""
        check_worker_facts(segment_versions({}, self._corpora), self._versions)
        self._batchers = {
            source: DocumentBatcher(corpus) for source, corpus in self._corpora.items()
        }

    def process(self, pack: tuple[FileSplit, ...]) -> Iterator[Any]:
        """Yield the batches of splits of one source, and then the records of the splits."""
        source = pack[0].source
        corpus, batcher = self._corpora[source], self._batchers[source]
        readers = [(split, corpus.reader(split)) for split in pack]
        amounts = InputCounts()
        for group in group_records(readers):
            pieces = batcher.sample(group, amounts.unsampled)
            if any(piece.items for piece in pieces):
                documents, rejected = self._read(pieces, source, batcher)
                amounts.add(pieces, [rejected])
                yield from tagged_outputs(documents, [add_raw_heads(rejected, pieces)])
        increment_counter("records not sampled", amounts.unsampled.total())
        for split, reader in readers:
            record = SplitRecord.of(split, reader, **amounts.of(split.relative))
            if record.cut and not corpus.options.skip_unreadable:
                raise UserError(
                    f"The input {shown(split.path)} {record.why_cut}. Fetch it again, or pass "
                    "skip_unreadable=True to ReadCorpus to use the records that can be read"
                )
            yield beam.TaggedOutput(_SPLITS, record)

    def _read(
        self, pieces: Sequence[BatchPiece], source: str, batcher: DocumentBatcher
    ) -> tuple[pa.RecordBatch, FilterResult]:
        """Return the documents of records, and the rows that are left out, with reasons."""
        found = batcher.to_batch(pieces)
        batch = found.batch
        place = batch.schema.get_field_index(PATH.name)
        batch = batch.add_column(place, SOURCE, constant_column(source, batch.num_rows))
        increment_counter("records read", batch.num_rows)
        increment_counter("bytes in", pc.sum(batch["bytes"]).as_py() or 0)
        return split_result(FilterResult(batch, found.reasons))
