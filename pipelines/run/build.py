"""A run from options to manifest: plan, map, dedup, merge, commit.

What the phases hand to each other lies in files under <output>/.work; the driver reads the tasks'
records between them, so a run that was interrupted goes on where records end, on any runner.
"""

import hashlib
import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pipelines.corpus.options import DATASET, SEGMENTS, Options, semantic
from pipelines.corpus.sources import Corpus, match_corpora, others
from pipelines.corpus.values import corpus_fraction, is_share
from pipelines.dedup.drops import drop_path
from pipelines.dedup.phases import Dedup, Deduplicated
from pipelines.engine.phases import Phases
from pipelines.engine.records import complete_files
from pipelines.engine.runner import Runner, hush
from pipelines.engine.workers import num_workers
from pipelines.inputs.sources import InputFile
from pipelines.map.attempts import died_before
from pipelines.map.mapper import Job, SplitRecord, versions
from pipelines.map.splits import Splits
from pipelines.map.stages import Chain
from pipelines.merge.group import group_segments
from pipelines.merge.holdout import holdout_threshold, num_shards
from pipelines.merge.tasks import MergeRecord, MergeTask, prepare_merge
from pipelines.report.showcase import showcase
from pipelines.report.sums import figures
from pipelines.run import account, existing
from pipelines.run.commit import Results, clean_up, commit, describe, input_entries, tokenizer_entry
from pipelines.run.origin import given
from pipelines.segments.plan import Plan, PlannedSegment, task_name
from pipelines.segments.range import Range
from shards import manifest as manifests
from shards.manifest import TRAIN, VALIDATION, WORK, Manifest
from shards.records import to_json
from shards.storage.files import canonical
from shards.storage.lock import locked
from shards.vocabulary import write_vocabulary

_LOG = logging.getLogger("corpusmill")


def build(module: str, options: Options, *, flags: Sequence[str] = ()) -> Manifest:
    """Make the dataset that the options describe, or finish it, or find it made.

    Args:
        module: The module that holds the corpus's RECIPE.
        options: Options with nothing left open, as `completed` returns them.
        flags: Flags for Beam.

    Raises:
        UserError: It cannot be made; the message says why and what to do.
    """
    with _opened(module, options, flags) as run:
        return run.existing() or run.make()


def map_part(module: str, options: Options, *, flags: Sequence[str] = ()) -> None:
    """Map the shares of the options' `part`; others may map theirs into the same output.

    Args:
        module: The module that holds the corpus's RECIPE.
        options: Options with nothing left open, as `completed` returns them.
        flags: Flags for Beam.

    Raises:
        UserError: They cannot be mapped; the message says why and what to do.
    """
    with _opened(module, options, flags) as run:
        if not run.existing():
            run.map_part()


@contextmanager
def _opened(module: str, options: Options, flags: Sequence[str]) -> Iterator["Build"]:
    hush()
    files, corpora = match_corpora(module, options)
    share = sum(file.bytes for file in files) * corpus_fraction(options.part)
    workers = num_workers(options.workers, work_bytes=int(share))
    with locked(options.output, shared=is_share(options.part)):
        # Where this process died with its work, a child shows at which record.
        workers = workers or int(died_before(options.output / WORK))
        with Runner(flags, num_workers=workers) as runner:
            yield Build(Corpus(module, options), corpora, files=files, runner=runner)


class Build:
    """One run; the lock on its output is held."""

    def __init__(
        self,
        corpus: Corpus,
        corpora: Mapping[str, Corpus],
        *,
        files: Sequence[InputFile],
        runner: Runner,
    ) -> None:
        """Make a run.

        Args:
            corpus: The corpus whose command this is.
            corpora: The corpus of each source.
            files: What to read.
            runner: Where tasks run.
        """
        self.options = corpus.options
        self.chain = Chain(self.options)
        self.corpus = corpus
        self.readings = {source: each.reading for source, each in corpora.items()}
        self.files = files
        self.output = self.options.output
        self.job = Job(
            options=self.options,
            corpora=dict(corpora),
            versions=versions(self.chain),
            run=uuid.uuid4().hex,
        )
        self.work = self.job.work
        self.semantic = semantic(self.options, self.chain.facts, decides=(SEGMENTS, DATASET))
        self.semantic |= others(corpora, corpus)
        self.semantic |= corpus.rejects.facts() if corpus.rejects else {}
        self.runner = runner
        self.phases = Phases(self.work, runner)

    def existing(self) -> Manifest | None:
        """Return the dataset's manifest if the dataset is there and is what this run would make.

        Raises:
            UserError: There is another dataset.
        """
        if self.options.overwrite or not (self.output / manifests.NAME).exists():
            return None
        found = manifests.load(self.output)
        existing.check_corpus(found, self.corpus.recipe.name, output=self.output)
        existing.check_same(found, self.semantic, output=self.output)
        existing.check_inputs(
            found,
            self.files,
            readings=self.readings,
            split_bytes=self.options.split_bytes,
            output=self.output,
        )
        existing.check_files(found, output=self.output)
        self._clean_up()
        _LOG.info("%s is complete: nothing to do", self.output)
        return found

    def make(self) -> Manifest:
        """Go through the phases."""
        existing.remove_leftovers(self.output)
        records = self._splits().records()
        account.check_rejects(records, most=self.options.max_reject_rate, work=self.work)
        plan = group_segments(self.plan(records), self.phases, self.options, work=self.work)
        dedup = Dedup(self.phases, plan, self.output, self.options).run()
        merged = self.merge(plan, dedup)
        results = Results(records=records, plan=plan, dedup=dedup, merged=merged)
        return self.commit(results)

    def map_part(self) -> None:
        """Map the run's shares and say what is to be done next."""
        self._splits().map_part()

    def _splits(self) -> Splits:
        """Return the splits of the run, after saying what is read by what."""
        megabytes = self._megabytes()
        engines = ", ".join(self.chain.engines.values())
        _LOG.info("%d files, %.1f MB; %s", len(self.files), megabytes, engines)
        for warning in self.chain.quality.warnings(self.options.languages):
            _LOG.warning("%s", warning)
        return Splits(self.job, self.chain.facts, files=self.files, phases=self.phases)

    def commit(self, results: Results) -> Manifest:
        """Write the manifest and say what was made."""
        there = (self.output / manifests.NAME).exists()
        made = describe(
            results,
            corpus=self.corpus.recipe.name,
            options=self.semantic,
            tokenizer=tokenizer_entry(self.options.tokenizer, self.chain.tokenizer),
            vocabulary=write_vocabulary(self.output, self.chain.tokenizer.vocabulary()),
            number=1 + (manifests.load(self.output).number if there else 0),
        )
        run = {
            **self.phases.figures(),
            "workers": self.runner.num_workers,
            "input_MB": self._megabytes(),
            "dedup": results.dedup.figures,
            "given": given(self.options, self.chain.facts),
            **figures(results.records, results.merged, quality=self.chain.quality),
            "examples": showcase(
                results.plan, results.merged, self.output, quality=self.chain.quality
            ),
        }
        commit(self.output, made, files=self.files, run=run)
        self._clean_up()
        for line in account.lines(made.generations[-1].accounting, made, self.output):
            _LOG.info("%s", line)
        return made

    def _clean_up(self) -> None:
        if not (self.options.keep_segments or is_share(self.options.part)):
            clean_up(self.work)

    def _megabytes(self) -> float:
        return sum(file.bytes for file in self.files) / 1e6

    def plan(self, records: Sequence[SplitRecord]) -> Plan:
        """Return the plan for what follows, written for the tasks."""
        identity: dict[str, Any] = {
            "corpus": self.corpus.recipe.name,
            "options": self.semantic,
            "inputs": to_json(input_entries(records)),
        }
        poison = [[r.source, r.relative, r.poison] for r in records if r.poison]
        identity |= {"poison": poison} if poison else {}
        if self.options.overwrite and (self.output / manifests.NAME).exists():
            # Other libraries make other bytes, which must not take the old files' names.
            had = manifests.load(self.output).libraries
            identity |= {"libraries": self.job.versions} if had != self.job.versions else {}
        fingerprint = hashlib.sha256(canonical(identity)).hexdigest()
        plan = Plan(
            generation=f"g0001-{fingerprint[:8]}",
            fingerprint=fingerprint,
            dtype=self.chain.tokenizer.dtype.name,
            texts=self.options.keep_dropped,
            segments=tuple(
                PlannedSegment.of(segment, record.source)
                for record in records
                for segment in record.segments
            ),
        )
        plan.save(self.work)
        return plan

    def merge(self, plan: Plan, dedup: Deduplicated) -> dict[str, list[MergeRecord]]:
        """Return the records of all shards, by source: those of train, then validation."""
        tasks = [task for source in plan.sources for task in self._merge_tasks(plan, source, dedup)]
        records = self.phases.finish(
            "merge",
            tasks,
            prepare_merge,
            self.output,
            kind=MergeRecord,
            complete=lambda record: complete_files(
                self.output, [*record.shards, *record.validation, *record.tables()]
            ),
        )
        return {
            source: [records[task.name] for task in tasks if task.source == source]
            for source in plan.sources
        }

    def _merge_tasks(self, plan: Plan, source: str, dedup: Deduplicated) -> list[MergeTask]:
        shards = self.options.shards or num_shards(
            plan, source, work=self.work, shard_tokens=self.options.shard_tokens
        )
        holdout = holdout_threshold(
            plan,
            source,
            work=self.work,
            drops=[drop_path(self.work, name) for name in dedup.drops],
            dropped=dedup.dropped(source),
            fraction=self.options.validation,
        )
        held = max(1, -(-shards * holdout >> 64)) if holdout else 0
        split_totals = {TRAIN: max(shards, 1), VALIDATION: held}
        return [
            MergeTask(
                name=task_name("merge", plan.name, source, split, index, total, holdout, found),
                plan=plan.name,
                source=source,
                split=split,
                index=index,
                total=total,
                holdout=holdout,
                drops=found,
            )
            for split, total in split_totals.items()
            for index in range(total)
            for found in [dedup.drops_within(Range.of(index, total))]
        ]
