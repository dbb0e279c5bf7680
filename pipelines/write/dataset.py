"""WriteDataset, the last transform of a custom pipeline, which turns documents into a dataset."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from pipelines.corpus.keywords import options_of_call
from pipelines.corpus.options import Options
from pipelines.execute import beam
from pipelines.execute.beam import PCollection
from pipelines.execute.counters import NAMESPACE
from pipelines.pipeline import CommitManifest, FindDuplicates, WriteShards
from pipelines.process.processor import SplitRecord
from pipelines.steps.fingerprint import FingerprintStep
from pipelines.steps.outputs import BatchTransform, CorpusOutputs, FilterOutputs, increment_counter
from pipelines.steps.spec import StepSpec
from pipelines.steps.transforms import Steps, Tokenize
from pipelines.write.commit import (
    PipelineResult,
    check_grows,
    check_new,
    clean_up,
    commit_pane,
    job_store,
    save_job,
)
from pipelines.write.segment_writer import SegmentResult, WriteContext, WriteSegments
from pipelines.write.windows import WindowPane
from shards.commands.spelling import expected
from shards.errors import UserError
from shards.storage.remote import any_path

OPTIONS = (
    "eos", "dedup", "minhash_threshold", "validation", "shards", "shard_tokens",
    "keep_dropped", "max_reject_rate", "keep_segments", "overwrite",
)  # fmt: skip
"""The options of the commands that WriteDataset accepts: those that apply after judging."""

MILLISECONDS_TO_COMMIT = "milliseconds from a row to its generation"
"""A metric: the time from the arrival of a segment's first row in a worker to the commit."""

_COMMITTING = "Find duplicates, merge, commit"
"""The label of the last step for windowed input, as engines show it."""

_OUTPUTS: WeakKeyDictionary[beam.Pipeline, set[str]] = WeakKeyDictionary()
"""The outputs of the WriteDatasets of each pipeline."""


class WriteDataset(BatchTransform):
    """Writes batches as a dataset; yields the dataset's folder once it is complete.

    Each worker writes its batches as segments. Then the stages that end every job follow, spread
    over the workers: FindDuplicates, WriteShards, CommitManifest (pipelines/pipeline.py).

    Windowed batches become a growing dataset: each pane of a window becomes a generation, one after
    another. For each generation, the transform yields the dataset at that point, such as
    "build/news@3".
    """

    def __init__(
        self,
        output: str,
        *,
        tokenizer: str,
        dropped: Iterable[FilterOutputs | CorpusOutputs | PCollection[pa.RecordBatch]] = (),
        metrics: Iterable[Steps] | Steps = (),
        **options: Any,
    ) -> None:
        """Prepare the transform.

        Args:
            output: The dataset's folder: a path or URL that all workers can reach.
            tokenizer: As for Tokenize; it is applied to batches without tokens.
            dropped: The rows that the pipeline left out, for the account: outputs of ReadCorpus and
                of judging transforms, or collections of batches with a column `reason`.
            metrics: Transforms whose metrics the audit table keeps, such as JudgeQuality.
            options: Options of the commands, by the names of their flags: eos, dedup,
                minhash_threshold, validation, shards, shard_tokens, keep_dropped, max_reject_rate,
                keep_segments, overwrite. Values may be strings as on a command line.

        Raises:
            UserError: An option is unknown, or its value is not valid.
        """
        super().__init__()
        for name in options:
            if name not in OPTIONS:
                raise UserError(
                    f"WriteDataset has no option {name!r}: {expected(name, OPTIONS)}. Options "
                    "for reading and judging texts belong to the other transforms"
                )
        own = {
            "output": any_path(output).absolute(),
            "tokenizer": tokenizer,
            "languages": ("all",),
            "language_threshold": 0.0,
        }
        given = {**own, **{name: value for name, value in options.items() if value is not None}}
        self.options = options_of_call(Options, given, module="pipelines.text")
        (tokenize,) = Tokenize(tokenizer, eos=self.options.eos).specs
        self._context = WriteContext(
            options=self.options,
            fingerprint=_fingerprint(self.options),
            tokenize=tokenize,
            tokenizer=str(tokenize.driver_facts["tokenizer"]),
            engine=str(tokenize.driver_facts["tokenizer library"]),
            metrics=_fields(metrics),
        )
        self._dropped = tuple(dropped)

    def expand(self, kept: PCollection[pa.RecordBatch]) -> PCollection[str]:
        """Apply the transform.

        Raises:
            UserError: The output contains a dataset that these documents cannot be added to, or
                the collections do not fit together.
        """
        if in_windows := _is_windowed(kept):
            _check_windows(kept)
            self._check_stream()
        else:
            check_new(self.options)
        self._context = replace(self._context, lateness=_lateness(kept))
        seen = [kept]
        collected = [kept | "Write kept" >> self._collect(dropped=False)]
        for number, one in enumerate(self._dropped):
            parts = one[1:] if isinstance(one, FilterOutputs | CorpusOutputs) else (one,)
            for name, part in zip(CorpusOutputs._fields[1:], parts, strict=False):
                if any(part is other for other in seen):
                    raise UserError(
                        "WriteDataset received the same collection twice, which would count its "
                        "rows twice: pass the kept rows as its input, and list the outputs of each "
                        "transform once in dropped=[…]"
                    )
                _check_same_windows(part, kept)
                seen.append(part)
                if part.element_type is SplitRecord:
                    collected.append(part)
                else:
                    collected.append(part | f"Write {name} {number}" >> self._collect(dropped=True))
        self._check_alone(kept.pipeline)
        records = collected | "All records" >> beam.Flatten()
        if in_windows:
            return self._commit_windows(records)
        return self._commit(records)

    def _commit(self, records: PCollection[Any]) -> PCollection[str]:
        """Add the stages that follow the segments in every job."""
        store = job_store(self._context)
        saving = beam.FlatMap(_save_job, beam.AsList(records), context=self._context)
        noted: PCollection[str] = (
            records.pipeline
            | "Once" >> beam.Impulse()
            | "Save job" >> saving.with_output_types(str)
        )
        folder: PCollection[str] = (
            noted
            | "FindDuplicates" >> FindDuplicates(store, dedup=self.options.dedup)
            | "WriteShards" >> WriteShards(store)
            | "CommitManifest" >> CommitManifest(store)
            | "Clean up" >> beam.Map(_clean_up, context=self._context).with_output_types(str)
        )
        return folder

    def _commit_windows(self, records: PCollection[Any]) -> PCollection[str]:
        made: PCollection[str] = (
            records
            | "Use one key" >> beam.Map(_keyed).with_output_types(tuple[str, Any])
            | "Group panes" >> beam.GroupByKey()
            | _COMMITTING >> beam.ParDo(CommitPanes(self._context)).with_output_types(str)
        )
        return made

    def _check_stream(self) -> None:
        if self.options.overwrite:
            raise UserError(
                "WriteDataset cannot overwrite with windowed input, because each window adds a "
                "generation as it closes: leave overwrite=True out, or choose a new output"
            )
        check_grows(self._context)

    def _check_alone(self, pipeline: beam.Pipeline) -> None:
        outputs = _OUTPUTS.setdefault(pipeline, set())
        output = str(self.options.output)
        if output in outputs:
            raise UserError(
                f"two WriteDatasets of one pipeline write to {output}: give each another output, "
                "or flatten their inputs into one"
            )
        outputs.add(output)

    def _collect(self, *, dropped: bool) -> Any:
        return beam.ParDo(WriteSegments(self._context, dropped=dropped)).with_output_types(Any)


def _save_job(
    _: bytes, records: Sequence[SegmentResult | SplitRecord], *, context: WriteContext
) -> list[str]:
    save_job(context, PipelineResult.of(records))
    return []


def _clean_up(_: str, *, context: WriteContext) -> str:
    clean_up(context)
    return str(context.options.output)


class CommitPanes(beam.DoFn):
    """Makes a generation from the rows of each pane."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context

    def start_bundle(self) -> None:
        """Start a bundle, which has no panes yet."""
        self._panes: list[tuple[WindowPane, Any, PipelineResult]] = []

    def process(
        self,
        group: tuple[str, Iterable[SegmentResult]],
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> None:
        """Keep a pane for the end of the bundle."""
        self._panes.append((WindowPane.of(window, pane), window, PipelineResult.of(group[1])))

    def finish_bundle(self) -> Iterator[Any]:
        """Commit the panes of the bundle, those of the earliest window first."""
        for pane, window, written in sorted(self._panes, key=itemgetter(0)):
            made = commit_pane(self._context, written, pane)
            if made is None:
                increment_counter("firings repeated", 1)
                continue
            increment_counter("generations", 1)
            lag = beam.Metrics.distribution(NAMESPACE, MILLISECONDS_TO_COMMIT)
            for one in written.segments:
                lag.update(round(1000 * (time.time() - one.begun)))
            name = f"{self._context.options.output}@{made.number}"
            yield beam.WindowedValue(name, window.max_timestamp(), (window,))


def _keyed(written: SegmentResult) -> tuple[str, SegmentResult]:
    return "", written


def _fields(metrics: Iterable[Steps] | Steps) -> tuple[pa.Field, ...]:
    given = [metrics] if isinstance(metrics, Steps) else [*metrics]
    odd = next((one for one in given if not isinstance(one, Steps)), None)
    if odd is not None:
        raise UserError(
            f"metrics=[…] of WriteDataset contains {odd!r}: list the transforms whose metrics the "
            "audit table keeps, as in judge = JudgeQuality(…); metrics=[judge]"
        )
    return tuple(field for one in given for field in one.fields)


def _is_windowed(kept: PCollection[Any]) -> bool:
    return not kept.is_bounded or kept.windowing.windowfn != beam.GlobalWindows()


def _lateness(kept: PCollection[Any]) -> int:
    return -(-kept.windowing.allowed_lateness.micros // 1_000_000)


def _check_windows(kept: PCollection[Any]) -> None:
    """Check that each row is in only one pane, and that windows close at some time."""
    windowing = kept.windowing
    fires_once = isinstance(windowing.triggerfn, beam.DefaultTrigger) and not _lateness(kept)
    if windowing.accumulation_mode == beam.AccumulationMode.ACCUMULATING and not fires_once:
        raise UserError(
            "the windows that WriteDataset received have AccumulationMode.ACCUMULATING, so each "
            "firing repeats the rows of earlier ones: put WindowInto(…, "
            "accumulation_mode=AccumulationMode.DISCARDING) before it"
        )
    if windowing.windowfn == beam.GlobalWindows() and fires_once:
        raise UserError(
            "WriteDataset received an unbounded collection in the global window, which never "
            "closes: put WindowInto(FixedWindows(SECONDS)) before it, or a trigger"
        )
    if not kept.is_bounded and isinstance(kept.pipeline.runner, beam.FnApiRunner):
        raise UserError(
            "WriteDataset received an unbounded collection on Beam's FnApiRunner, which polls a "
            "stream only once: run the pipeline with --runner=PrismRunner, or on an engine "
            "(docs/own.md)"
        )


def _check_same_windows(dropped: PCollection[Any], kept: PCollection[Any]) -> None:
    ours, theirs = dropped.windowing.windowfn, kept.windowing.windowfn
    if ours != theirs:
        names = (type(one).__name__ for one in (ours, theirs))
        raise UserError(
            "the dropped rows that WriteDataset received are in other windows than the kept rows "
            "({}, and {}), so the account would not balance: put one WindowInto before the "
            "transforms that judge".format(*names)
        )
    if dropped.element_type is SplitRecord and _is_windowed(kept):
        raise UserError(
            "WriteDataset received a windowed collection and all outputs of a ReadCorpus, among "
            "them its splits, which have no window: pass only its outputs of rows, windowed"
        )


def _fingerprint(options: Options) -> StepSpec:
    near = options.dedup == "minhash"
    return StepSpec(make=FingerprintStep, arguments={"near": near})
