"""The end of a pipeline: what it made becomes a dataset, by the stages of every job."""

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
from pipelines.execute.figures import NAMESPACE
from pipelines.pipeline import CommitManifest, FindDuplicates, WriteShards
from pipelines.process.processor import SplitRecord
from pipelines.steps.fingerprint import FingerprintStep
from pipelines.steps.outputs import BatchTransform, CorpusOutputs, FilterOutputs, increment_counter
from pipelines.steps.spec import StepSpec
from pipelines.steps.transforms import Steps, Tokenize
from pipelines.write.collect import Collect, Collected, Sink
from pipelines.write.commit import (
    PipelineResult,
    check_grows,
    check_new,
    clean_up,
    commit_firing,
    note,
    notes_of,
)
from pipelines.write.windows import Firing
from shards.commands.spelling import expected
from shards.errors import UserError
from shards.storage.remote import any_path

TAKEN = (
    "eos", "dedup", "minhash_threshold", "validation", "shards", "shard_tokens",
    "keep_dropped", "max_reject_rate", "keep_segments", "overwrite",
)  # fmt: skip
"""The options of the commands that say what is made of judged documents."""


MILLISECONDS_TO_COMMIT = "milliseconds from a row to its generation"
"""Of the first row of each segment: from its arrival in a worker to the commit."""

_COMMITTING = "Find duplicates, merge, commit"
"""How engines call the last step of windows."""

_OUTPUTS: WeakKeyDictionary[beam.Pipeline, set[str]] = WeakKeyDictionary()
"""The outputs of each pipeline."""


class WriteDataset(BatchTransform):
    """Writes batches as a dataset; gives its folder once it is whole.

    Batches are written as segments where they are. Then come the stages that end every job, spread
    over the workers: FindDuplicates, WriteShards, CommitManifest (pipelines/pipeline.py).

    Batches in windows become a dataset that grows: a generation for each firing of a window, by one
    such item after the other. It gives the dataset as of each, as in "build/news@3".
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
        """Prepare it.

        Args:
            output: The dataset's folder, a path or URL that all workers reach.
            tokenizer: As Tokenize; batches that have no tokens yet get them.
            dropped: The rows that the pipeline left out: outputs of ReadCorpus and of judging
                transforms, or collections of batches with a column `reason`. The account counts
                them.
            metrics: Transforms whose metrics the audit table keeps, JudgeQuality for example.
            options: Of the commands, by the names of their flags: eos, dedup, minhash_threshold,
                validation, shards, shard_tokens, keep_dropped, max_reject_rate,
                keep_segments, overwrite. Values may be the texts that the flags take.

        Raises:
            UserError: An option is unknown, or its value is none that its flag takes.
        """
        super().__init__()
        for name in options:
            if name not in TAKEN:
                raise UserError(
                    f"WriteDataset has no option {name!r}: {expected(name, TAKEN)}. Options "
                    "of reading and judging texts belong to the other transforms"
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
        self._sink = Sink(
            options=self.options,
            fingerprint=_fingerprint(self.options),
            tokenize=tokenize,
            tokenizer=str(tokenize.driver_facts["tokenizer"]),
            engine=str(tokenize.driver_facts["tokenizer library"]),
            metrics=_fields(metrics),
        )
        self._dropped = tuple(dropped)

    def expand(self, kept: PCollection[pa.RecordBatch]) -> PCollection[str]:
        """Wire it.

        Raises:
            UserError: The output holds a dataset that this is not to become part of, or the
                collections cannot be one.
        """
        if in_windows := _is_windowed(kept):
            _check_windows(kept)
            self._check_stream()
        else:
            check_new(self.options)
        self._sink = replace(self._sink, lateness=_lateness(kept))
        seen = [kept]
        collected = [kept | "Write kept" >> self._collect(dropped=False)]
        for number, one in enumerate(self._dropped):
            parts = one[1:] if isinstance(one, FilterOutputs | CorpusOutputs) else (one,)
            for name, part in zip(CorpusOutputs._fields[1:], parts, strict=False):
                if any(part is other for other in seen):
                    raise UserError(
                        "WriteDataset was given the same collection twice, which would count its "
                        "rows twice: give what stays as its input, and each transform's outputs "
                        "once in dropped=[…]"
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
        """Wire the stages that follow segments in every job."""
        notes = notes_of(self._sink)
        noted: PCollection[str] = (
            records.pipeline
            | "Once" >> beam.Impulse()
            | "Note what was written"
            >> beam.FlatMap(_note, beam.AsList(records), sink=self._sink).with_output_types(str)
        )
        folder: PCollection[str] = (
            noted
            | "FindDuplicates" >> FindDuplicates(notes, dedup=self.options.dedup)
            | "WriteShards" >> WriteShards(notes)
            | "CommitManifest" >> CommitManifest(notes)
            | "Clean up" >> beam.Map(_cleaned, sink=self._sink).with_output_types(str)
        )
        return folder

    def _commit_windows(self, records: PCollection[Any]) -> PCollection[str]:
        made: PCollection[str] = (
            records
            | "One after the other" >> beam.Map(_keyed).with_output_types(tuple[str, Any])
            | "A firing" >> beam.GroupByKey()
            | _COMMITTING >> beam.ParDo(CommitFirings(self._sink)).with_output_types(str)
        )
        return made

    def _check_stream(self) -> None:
        if self.options.overwrite:
            raise UserError(
                "WriteDataset was given a collection in windows with overwrite=True: each window "
                "adds a generation as it closes. Leave the option out, or take a new output"
            )
        check_grows(self._sink)

    def _check_alone(self, pipeline: beam.Pipeline) -> None:
        outputs = _OUTPUTS.setdefault(pipeline, set())
        output = str(self.options.output)
        if output in outputs:
            raise UserError(
                f"two WriteDataset of one pipeline write to {output}: give each an output of its "
                "own, or flatten their inputs into one"
            )
        outputs.add(output)

    def _collect(self, *, dropped: bool) -> Any:
        return beam.ParDo(Collect(self._sink, dropped=dropped)).with_output_types(Any)


def _note(_: bytes, records: Sequence[Collected | SplitRecord], *, sink: Sink) -> list[str]:
    note(sink, PipelineResult.of(records))
    return []


def _cleaned(_: str, *, sink: Sink) -> str:
    clean_up(sink)
    return str(sink.options.output)


class CommitFirings(beam.DoFn):
    """Makes a generation of the rows of each window, when it fires."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def start_bundle(self) -> None:
        """Begin."""
        self._fired: list[tuple[Firing, Any, PipelineResult]] = []

    def process(
        self,
        group: tuple[str, Iterable[Collected]],
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> None:
        """Take a firing."""
        self._fired.append((Firing.of(window, pane), window, PipelineResult.of(group[1])))

    def finish_bundle(self) -> Iterator[Any]:
        """Commit: of several firings that came together the earliest window first."""
        for firing, window, written in sorted(self._fired, key=itemgetter(0)):
            made = commit_firing(self._sink, written, firing)
            if made is None:
                increment_counter("firings repeated", 1)
                continue
            increment_counter("generations", 1)
            lag = beam.Metrics.distribution(NAMESPACE, MILLISECONDS_TO_COMMIT)
            for one in written.segments:
                lag.update(round(1000 * (time.time() - one.begun)))
            name = f"{self._sink.options.output}@{made.number}"
            yield beam.WindowedValue(name, window.max_timestamp(), (window,))


def _keyed(written: Collected) -> tuple[str, Collected]:
    return "", written


def _fields(metrics: Iterable[Steps] | Steps) -> tuple[pa.Field, ...]:
    given = [metrics] if isinstance(metrics, Steps) else [*metrics]
    odd = next((one for one in given if not isinstance(one, Steps)), None)
    if odd is not None:
        raise UserError(
            f"WriteDataset(metrics=[…]) was given {odd!r}: give it the transforms themselves whose "
            "metrics the audit table keeps, as in judge = JudgeQuality(…); metrics=[judge]"
        )
    return tuple(field for one in given for field in one.fields)


def _is_windowed(kept: PCollection[Any]) -> bool:
    return not kept.is_bounded or kept.windowing.windowfn != beam.GlobalWindows()


def _lateness(kept: PCollection[Any]) -> int:
    return -(-kept.windowing.allowed_lateness.micros // 1_000_000)


def _check_windows(kept: PCollection[Any]) -> None:
    """Check that each row comes in one firing, and that windows fire at all."""
    windowing = kept.windowing
    fires_once = isinstance(windowing.triggerfn, beam.DefaultTrigger) and not _lateness(kept)
    if windowing.accumulation_mode == beam.AccumulationMode.ACCUMULATING and not fires_once:
        raise UserError(
            "WriteDataset was given windows with AccumulationMode.ACCUMULATING, of which each "
            "firing repeats the rows of those before: put WindowInto(…, "
            "accumulation_mode=AccumulationMode.DISCARDING) before it"
        )
    if windowing.windowfn == beam.GlobalWindows() and fires_once:
        raise UserError(
            "WriteDataset was given an unbounded collection in the global window, which never "
            "closes: put WindowInto(FixedWindows(SECONDS)) before it, or a trigger"
        )
    if not kept.is_bounded and isinstance(kept.pipeline.runner, beam.FnApiRunner):
        raise UserError(
            "WriteDataset was given an unbounded collection on Beam's FnApiRunner, which ends a "
            "stream after its first look: give the pipeline --runner=PrismRunner, or an engine "
            "(docs/own.md)"
        )


def _check_same_windows(dropped: PCollection[Any], kept: PCollection[Any]) -> None:
    ours, theirs = dropped.windowing.windowfn, kept.windowing.windowfn
    if ours != theirs:
        names = (type(one).__name__ for one in (ours, theirs))
        raise UserError(
            "WriteDataset was given what is left out in other windows than what stays ({}, and "
            "{}), so that no account would balance: put the same WindowInto before the transforms "
            "that judge".format(*names)
        )
    if dropped.element_type is SplitRecord and _is_windowed(kept):
        raise UserError(
            "WriteDataset was given a collection in windows and all outputs of a ReadCorpus, whose "
            "files are of no window: give it those of its outputs that are rows, in windows"
        )


def _fingerprint(options: Options) -> StepSpec:
    near = options.dedup == "minhash"
    return StepSpec(make=FingerprintStep, arguments={"near": near})
