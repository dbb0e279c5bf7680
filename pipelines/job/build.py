"""A run from options to manifest: map, plan, dedup, merge, commit.

The phases hand files to each other under <output>/.work. Between phases the driver reads the
records of finished tasks, so an interrupted run resumes where the records end, on any runner.
"""

import hashlib
import logging
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pipelines.commit import account, existing
from pipelines.commit.commit import (
    Results,
    commit,
    describe,
    forget_phases,
    grown,
    input_entries,
)
from pipelines.commit.empty import empty_lines
from pipelines.commit.ledger import Ledger
from pipelines.commit.limits import check_kept, check_rejects, losses_of, unread_sources
from pipelines.commit.origin import given_paths, recorded_paths
from pipelines.commit.unknown import unknown_tokens, unknown_warnings
from pipelines.compiled import is_warm
from pipelines.corpus.languages import LANGUAGES
from pipelines.corpus.options import DATASET, SEGMENTS, Options, semantic
from pipelines.corpus.part import MERGE, corpus_fraction, is_share
from pipelines.corpus.recipe import load_recipe
from pipelines.corpus.sources import Corpus, list_corpora, others
from pipelines.dedup.drops import drop_path
from pipelines.dedup.phases import Dedup, Deduplicated
from pipelines.execute.phases import Phases
from pipelines.execute.records import complete_files
from pipelines.execute.runner import Runner, silence_beam
from pipelines.execute.workers import num_workers
from pipelines.job.ready import check_ready
from pipelines.map.description import describe_run
from pipelines.map.first_records import FirstFiles, check_first_records
from pipelines.map.mapper import Job, MapRecord, segment_versions
from pipelines.map.phase import MapPhase
from pipelines.merge.holdout import holdout_threshold, num_shards
from pipelines.merge.ranges import cut_into_ranges
from pipelines.merge.tasks import MergeRecord, MergeTask, prepare_merge
from pipelines.quality import Quality
from pipelines.quality.selection import joined, recorded_bounds
from pipelines.read.files import InputFile, Listing
from pipelines.report.showcase import showcase
from pipelines.report.sums import figures
from pipelines.segments.plan import Earlier, Plan, PlannedSegment, task_name
from pipelines.steps.filter_spec import parse_filter
from shards import manifest as manifests
from shards.errors import UserError
from shards.manifest import TRAIN, VALIDATION, Manifest, lock_dataset
from shards.paths import FOLDERS, check_links
from shards.prune import remove_unfinished, remove_work
from shards.range import Range
from shards.records import to_json
from shards.storage.files import canonical
from shards.vocabulary import write_vocabulary

_LOG = logging.getLogger("corpusmill")


def build(module: str, options: Options) -> Manifest:
    """Make the dataset that the options describe, resume it, or find it complete.

    Args:
        module: The module that holds the corpus's RECIPE.
        options: Complete options, as `completed` returns them.

    Raises:
        UserError: The dataset cannot be made; the message says why and what to do.
    """
    with _opened(module, options) as run:
        return run.existing() or run.make()


def map_part(module: str, options: Options) -> None:
    """Map the shares that --part names; other machines may map theirs into the same output.

    Args:
        module: The module that holds the corpus's RECIPE.
        options: Complete options, as `completed` returns them.

    Raises:
        UserError: They cannot be mapped; the message says why and what to do.
    """
    with _opened(module, options) as run:
        if not run.existing():
            run.map_part()


@contextmanager
def _opened(module: str, options: Options) -> Iterator["Build"]:
    """Yield a run that holds the lock on its output; the workers end with the block."""
    check_ready(options, corpus=load_recipe(module).name)
    listing, corpora = list_corpora(module, options)
    with (
        lock_dataset(options.output, shared=is_share(options.part)),
        started(Corpus(module, options), corpora, files=listing.files) as run,
    ):
        run.left_out = listing.refused
        yield run


@contextmanager
def started(
    corpus: Corpus,
    corpora: Mapping[str, Corpus],
    *,
    files: Sequence[InputFile],
) -> Iterator["Build"]:
    """Yield a run, for who holds the lock on its output; the workers end with the block.

    Args:
        corpus: The corpus whose command this is.
        corpora: The corpus of each source.
        files: The input files.

    Raises:
        UserError: A model cannot be loaded, or the engine does not answer.
    """
    silence_beam()
    options = corpus.options
    map_bytes = int(sum(file.bytes for file in files) * corpus_fraction(options.part))
    workers = num_workers(options.workers, work_bytes=map_bytes)
    if not workers and options.watch:
        workers = 1  # the record that kills a process kills a child, and is found
    if not is_warm():
        _LOG.info("kernels are compiled first, once on this machine: up to 40 seconds")
    # What the driver has imported is what tasks need.
    preload = (__name__, "pipelines.kernel_cache")
    with Runner(
        options.engine, num_workers=workers, preload=preload, dataset=options.output.name
    ) as runner:
        yield Build(corpus, corpora, files=files, runner=runner)


class Build:
    """One run, while it holds the lock on its output."""

    def __init__(
        self,
        corpus: Corpus,
        corpora: Mapping[str, Corpus],
        *,
        files: Sequence[InputFile],
        runner: Runner,
    ) -> None:
        """Prepare a run.

        Args:
            corpus: The corpus whose command this is.
            corpora: The corpus of each source.
            files: The input files.
            runner: Runs the tasks.
        """
        self.options = corpus.options
        # The chain, which knows the labels of a model of one's own, checks them.
        self.quality = Quality.parse(
            self.options.quality,
            overrides=self.options.threshold,
            labels=None if self.options.lid_model else LANGUAGES,
        )
        self.corpus = corpus
        self.corpora = corpora
        self.readings = {name: source.reading for name, source in corpora.items()}
        self.files = files
        self.left_out: Mapping[InputFile, str] = {}
        """What of the inputs cannot be read, and why; the report lists it."""
        self.failed: dict[InputFile, str] = {}
        """What a watch has met that cannot be mapped, and why."""
        self.arrived: Mapping[InputFile, float] = {}
        """When files were first seen, in seconds since 1970, where that is known."""
        self.shards: Mapping[str, int] = {}
        """Shards of each source; one that is not named gets as many as its tokens need."""
        self.output = self.options.output
        self.runner = runner
        number = uuid.uuid4().hex
        self.chain = runner.call(describe_run, (self.options, number))
        measured = recorded_bounds(self.chain.facts)
        self.judged = Quality(joined(self.quality.selection, measured))
        """The rules of profiles and of scorers, whose models only the workers need to have."""
        self.job = Job(
            options=self.options,
            corpora=dict(corpora),
            versions=segment_versions(self.chain.engines, corpora),
            run=number,
        )
        self.work = self.job.work
        self.semantic = semantic(self.options, self.chain.facts, decides=(SEGMENTS, DATASET))
        self.semantic |= others(corpora, corpus)
        self.semantic |= corpus.facts()
        self.phases = Phases(self.work, runner)

    def existing(self) -> Manifest | None:
        """Return the manifest of the dataset if this run would make that very dataset, else None.

        Raises:
            UserError: The output holds another dataset.
        """
        if self.options.overwrite or not (self.output / manifests.NAME).exists():
            return None
        manifest = manifests.read_manifest(self.output)
        self.check_same(manifest, advice=existing.REPLACE)
        existing.check_inputs(
            manifest,
            Listing(files=[*self.files], refused={}),
            readings=self.readings,
            output=self.output,
        )
        existing.check_files(manifest, output=self.output)
        self.clean_up()
        _LOG.info("%s is complete: nothing to do", self.output)
        return manifest

    def check_same(self, manifest: Manifest, *, advice: str) -> None:
        """Check that a dataset was made by this corpus with these options.

        Args:
            manifest: Of the dataset.
            advice: What the user can do where it was not.

        Raises:
            UserError: It was not; the message names the options that differ.
        """
        name = self.corpus.recipe.name
        existing.check_corpus(manifest, name, output=self.output, advice=advice)
        existing.check_options(
            manifest,
            self.semantic,
            output=self.output,
            advice=advice,
            files=existing.Files(
                tokenizers=(self.chain.tokenizer, manifest.tokenizer),
                given=(given_paths(self.options, self.chain.facts), recorded_paths(self.output)),
            ),
        )

    def make(self) -> Manifest:
        """Make the dataset and return its manifest."""
        remove_unfinished(self.output)
        self.announce()
        self.check_first(self.files)
        return self.make_of(self.map_phase(self.files).map_all())

    def make_of(self, records: Sequence[MapRecord]) -> Manifest:
        """Make the dataset of splits that are mapped, and return its manifest.

        Args:
            records: Of the map, by file and place.

        Raises:
            UserError: Too many records cannot be read, or none is left.
        """
        self._check_rejects(records, self.files)
        languages = self.judged.describe()
        check_kept(records, [rule for each in languages for rule in self.judged.rules(each)])
        made = self._finish(records, self.files, base=None)
        self.clean_up()
        return made

    def grow_by(
        self,
        records: Sequence[MapRecord],
        *,
        base: Manifest | None,
        arrivals: Sequence[float],
    ) -> Manifest:
        """Make a generation of splits that are mapped, and return the manifest that has it.

        Segments stay, of this generation and of others that are under way.

        Args:
            records: As in make_of.
            base: The dataset that gets the generation; None makes its first.
            arrivals: When their documents came, in seconds since 1970.

        Raises:
            UserError: It cannot be made; the message says why and what to do.
        """
        made = self._finish(records, self.files, base=base, arrivals=arrivals)
        if not self.options.keep_segments:
            forget_phases(self.work)
        return made

    def add(
        self,
        base: Manifest | None,
        files: Sequence[InputFile],
    ) -> Manifest | None:
        """Make a generation of these files, and return the manifest that has it.

        Files whose segments are there already are not mapped again. Segments of other files stay.
        The ledger names the files once they are mapped, until they are in the manifest. A watch
        leaves out what cannot be mapped.

        Args:
            base: The dataset that gets the generation; None makes its first.
            files: Input files, in any order.

        Returns:
            The manifest; `base` if nothing could be mapped.

        Raises:
            UserError: It cannot be made; the message says why and what to do.
        """
        ranked = sorted(files, key=lambda file: file.name)
        number = 1 if base is None else len(base.generations) + 1
        _LOG.info("generation %d: %d files, %.1f MB", number, len(files), _megabytes(files))
        phase = self.map_phase(ranked)
        records = phase.map_all()
        ranked = [file for file in ranked if file not in self.failed]
        if not ranked:
            Ledger(self.output).close()  # it may have named them
            return base
        if not self.options.watch:  # that goes on whatever arrives
            self._check_rejects(records, ranked)
        ledger = Ledger(self.output)
        ledger.name(base.number + 1 if base else 1, ranked)
        arrivals = [self.arrived[file] for file in ranked if file in self.arrived]
        made = self._finish(records, ranked, base=base, arrivals=arrivals)
        try:
            ledger.close()
            if not self.options.keep_segments:
                phase.forget()
                forget_phases(self.work)
        except (UserError, OSError) as error:  # the generation is made all the same
            _LOG.warning("what is no longer needed is not deleted: %s", error)
        self.phases = Phases(self.work, self.runner)
        return made

    def _check_rejects(self, records: Sequence[MapRecord], files: Sequence[InputFile]) -> None:
        """Check that not too many records are unreadable; say what those hold that all are.

        Raises:
            UserError: Too many are.
        """
        most = self.options.max_reject_rate
        if losses_of(records).rate > most:
            sources = unread_sources(records)
            own = [file for file in files if file.source in sources]
            check_first_records(FirstFiles(job=self.job, files=own), call=self.runner.call)
        check_rejects(records, files, corpora=self.job.corpora, most=most, folder=self.work / "map")

    def _finish(
        self,
        records: Sequence[MapRecord],
        files: Sequence[InputFile],
        *,
        base: Manifest | None,
        arrivals: Sequence[float] = (),
    ) -> Manifest:
        """Run the phases after the map, commit and return the manifest."""
        plan = self.plan(records, base=base)
        dedup = Dedup(
            self.phases,
            plan,
            self.output,
            dedup=self.options.dedup,
            threshold=self.options.minhash_threshold,
        ).run()
        merged = self.merge(plan, dedup)
        results = Results(records=records, plan=plan, dedup=dedup, merged=merged)
        return self._commit(results, files, base=base, arrivals=arrivals)

    def map_part(self) -> None:
        """Map the shares of this machine and say what to do next."""
        self.announce()
        self.check_first(self.files)
        self.map_phase(self.files).map_part()

    def check_first(self, files: Sequence[InputFile], *, base: Manifest | None = None) -> None:
        """Check that each source of these files can be read and has the fields that options name.

        It is done before any file is mapped.

        Args:
            files: By source and path.
            base: The dataset that they are added to, if any.

        Raises:
            UserError: Nothing can be read of one; the message says what its records hold.
        """
        if self.options.part == (MERGE,):
            return
        known = frozenset(base.sources() if base else ())
        first = FirstFiles(job=self.job, files=files, known=known)
        check_first_records(first.unmapped(self.chain.facts), call=self.runner.call)

    def map_phase(self, files: Sequence[InputFile]) -> MapPhase:
        """Return the map of some files."""
        facts = self.chain.facts
        return MapPhase(self.job, facts, files=files, phases=self.phases, failed=self.failed)

    def announce(self) -> None:
        """Log what is read, and by which engines."""
        engines = ", ".join(self.chain.engines.values())
        size = f"{len(self.files)} files, {_megabytes(self.files):.1f} MB; " if self.files else ""
        _LOG.info("%s%s", size, engines)
        if unused := self.chain.unused_end:
            _LOG.info(
                "documents end with the id %d, as GLM's do, and not with the tokenizer's own %s: "
                "give --eos '%s' for a model that was trained with it",
                self.chain.tokenizer.special["eos"],
                unused,
                unused,
            )
        for warning in self.quality.warnings(self.options.languages):
            _LOG.warning("%s", warning)

    def _commit(
        self,
        results: Results,
        files: Sequence[InputFile],
        *,
        base: Manifest | None,
        arrivals: Sequence[float],
    ) -> Manifest:
        """Write the manifest and log what was made."""
        made = describe(
            results,
            corpus=self.corpus.recipe.name,
            options=self.semantic,
            tokenizer=self.chain.tokenizer,
            vocabulary=write_vocabulary(self.output, self.chain.vocabulary),
            number=self._next_number(),
        )
        if base is not None:
            made = grown(base, made)
        left_out = {**self.left_out, **self.failed}
        splits = (split for record in results.records for split in record.splits)
        whys = {split.name: split.why_cut for split in splits if split.cut}
        cut = {file: whys[file.name] for file in files if file.name in whys}
        unknown = unknown_tokens(results.records)
        run = {
            **self.phases.figures(),
            "workers": self.runner.num_workers,
            "input_MB": _megabytes(files),
            "dedup": results.dedup.figures,
            "given": given_paths(self.options, self.chain.facts),
            "left_out": _listed(left_out),
            "cut": _listed(cut),
            **figures(
                results.records,
                results.merged,
                quality=self.judged,
                filters=[parse_filter(spec).name for spec in self.options.filter],
            ),
            "unknown_tokens": unknown,
            "examples": showcase(results.plan, results.merged, self.output, quality=self.judged),
        }
        commit(self.output, made, inputs=files, run=run, arrivals=arrivals)
        lines = account.closing_lines(
            made.generations[-1].accounting,
            made,
            self.output,
            left_out=Counter(file.source for file in left_out),
            cut=Listing(files=[], refused=cut),
            unknown=unknown,
        )
        for line in lines:
            _LOG.info("%s", line)
        if self.options.keep_dropped and (again := account.erased_again(results.merged)):
            _LOG.info(
                "dropped documents whose text was erased from this dataset: %s; dropped/ has no "
                "copy of them",
                f"{again:,}",
            )
        for warning in (*empty_lines(results.records, self.corpora), *unknown_warnings(unknown)):
            _LOG.warning("%s", warning)
        return made

    def _next_number(self) -> int:
        if not (self.output / manifests.NAME).exists():
            return 1
        return manifests.read_manifest(self.output).number + 1

    def clean_up(self) -> None:
        """Delete all intermediate files, unless they are to stay."""
        if not (self.options.keep_segments or is_share(self.options.part)):
            remove_work(self.work)

    def plan(self, records: Sequence[MapRecord], *, base: Manifest | None = None) -> Plan:
        """Return the plan of the later phases; it is written where their tasks read it.

        Args:
            records: Of all tasks of the map.
            base: The dataset that grows; None for a new one.
        """
        identity: dict[str, Any] = {
            "corpus": self.corpus.recipe.name,
            "options": self.semantic,
            "inputs": to_json(input_entries(records)),
        }
        replaces = self.options.overwrite and (self.output / manifests.NAME).exists()
        if replaces and manifests.read_manifest(self.output).libraries != self.job.versions:
            # Other libraries make other bytes, which must not take the names of the old files.
            identity["libraries"] = self.job.versions
        earlier = () if base is None else base.generations
        if earlier:
            identity["earlier"] = [generation.fingerprint for generation in earlier]
        if base is not None and base.libraries != self.job.versions:
            identity["libraries"] = self.job.versions
        fingerprint = hashlib.sha256(canonical(identity)).hexdigest()
        plan = Plan(
            generation=f"g{len(earlier) + 1:04}-{fingerprint[:8]}",
            fingerprint=fingerprint,
            dtype=self.chain.tokenizer.dtype,
            texts=self.options.keep_dropped,
            segments=tuple(
                PlannedSegment.of(segment, record.source)
                for record in records
                for segment in record.segments
            ),
            earlier=tuple(
                Earlier.of(generation, dedup=self.options.dedup) for generation in earlier
            ),
        )
        folders = (*plan.sources, *FOLDERS)
        check_links(self.output, [f"{plan.generation}/{name}/-" for name in folders], files=False)
        plan.save(self.work)
        return plan

    def merge(self, plan: Plan, dedup: Deduplicated) -> dict[str, list[MergeRecord]]:
        """Return the merge records of each source: training shards, then validation shards."""
        shards = {
            source: self.options.shards
            or self.shards.get(source)
            or num_shards(plan, source, work=self.work, shard_tokens=self.options.shard_tokens)
            for source in plan.sources
        }
        plans = cut_into_ranges(plan, self.phases, self.output, shards=shards, dedup=dedup)
        tasks = [
            task
            for source in plan.sources
            for task in self._merge_tasks(
                plan, source, dedup, shards=shards[source], merged=plans[source]
            )
        ]
        records = self.phases.finish(
            "merge",
            tasks,
            prepare_merge,
            self.output,
            record_type=MergeRecord,
            complete=lambda record: complete_files(
                self.output, [*record.shards, *record.validation, *record.tables()]
            ),
        )
        return {
            source: [records[task.name] for task in tasks if task.source == source]
            for source in plan.sources
        }

    def _merge_tasks(
        self, plan: Plan, source: str, dedup: Deduplicated, *, shards: int, merged: Plan
    ) -> list[MergeTask]:
        """Return the tasks of a source, which read what the plan `merged` lists."""
        holdout = holdout_threshold(
            plan,
            source,
            work=self.work,
            drops=[drop_path(self.work, name) for name in dedup.drops],
            dropped=dedup.dropped(source),
            fraction=self.options.validation,
        )
        held = max(1, -(-shards * holdout >> 64)) if holdout else 0
        shards_by_split = {TRAIN: max(shards, 1), VALIDATION: held}

        def task(split: str, index: int, total: int) -> MergeTask:
            drops = dedup.drops_within(Range.of(index, total)) if merged is plan else ()
            return MergeTask(
                name=task_name("merge", merged.name, source, split, index, total, holdout, drops),
                plan=merged.name,
                source=source,
                split=split,
                index=index,
                total=total,
                holdout=holdout,
                drops=drops,
            )

        return [
            task(split, index, total)
            for split, total in shards_by_split.items()
            for index in range(total)
        ]


def _listed(files: Mapping[InputFile, str]) -> list[dict[str, str]]:
    return [
        {"source": file.source, "path": file.relative, "from": file.path, "why": why}
        for file, why in files.items()
    ]


def _megabytes(files: Sequence[InputFile]) -> float:
    return sum(file.bytes for file in files) / 1e6
