"""A run that makes a dataset: the work before and after its job.

Before the job, a run takes the lock, lists the inputs, loads the models, checks the first records
and chooses the number of the manifest. The job is one pipeline (pipelines/pipeline.py), which
resumes from the records of finished items. Afterwards, files that are no longer needed are deleted.
"""

import logging
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from pipelines.commit import existing
from pipelines.commit.commit import remove_stage_files
from pipelines.commit.ledger import Ledger
from pipelines.commit.origin import given_paths, recorded_paths
from pipelines.compiled import has_compiled_kernels
from pipelines.corpus.options import DATASET, SEGMENTS, Options, semantic_options
from pipelines.corpus.part import MERGE, corpus_fraction, is_share
from pipelines.corpus.sources import Corpus, list_corpus_files, other_corpora
from pipelines.corpus.spec import load_spec
from pipelines.corpus.versions import segment_versions
from pipelines.execute.job_store import JobStore
from pipelines.execute.runner import Runner, silence_beam
from pipelines.execute.workers import num_workers
from pipelines.job.ready import check_ready
from pipelines.plans import (
    FILES,
    SPEC,
    JobFiles,
    JobSpec,
    committed_manifest,
    planned_splits,
    processed_input,
)
from pipelines.process.first_records import FirstFiles, check_first_records
from pipelines.process.plan import forget_mapped, log_part
from pipelines.process.processor import Job
from pipelines.read.files import InputFile
from pipelines.read.listing import Listing
from pipelines.steps.description import StepsInfo, describe_run
from shards import manifest as manifests
from shards.commands.output import quantity
from shards.errors import UserError
from shards.maintenance.prune import remove_unfinished, remove_work
from shards.manifest import Manifest, lock_dataset
from shards.storage.remote import AnyPath

_LOG = logging.getLogger("corpusmill")


def build(module: str, options: Options) -> Manifest:
    """Make the dataset that the options describe, or resume it, or find it complete.

    Args:
        module: The module that holds the corpus as CORPUS.
        options: Complete options, as `completed` returns them.

    Raises:
        UserError: The dataset cannot be made; the message says why and what to do.
    """
    with _opened(module, options) as run:
        return run.existing() or run.make()


def process_part(module: str, options: Options) -> None:
    """Process the shares that --part names; other machines may process the rest.

    Args:
        module: The module that holds the corpus as CORPUS.
        options: Complete options, as `completed` returns them.

    Raises:
        UserError: The shares cannot be processed; the message says why and what to do.
    """
    with _opened(module, options) as run:
        if not run.existing():
            run.process_part()


@contextmanager
def _opened(module: str, options: Options) -> Iterator["Build"]:
    """Yield a run that holds the lock on its output; the workers stop when the block ends."""
    check_ready(options, corpus=load_spec(module).name)
    listing, corpora = list_corpus_files(module, options)
    with (
        lock_dataset(options.output, shared=is_share(options.part)),
        open_build(Corpus(module, options), corpora, files=listing.files) as run,
    ):
        run.left_out = listing.refused
        yield run


@contextmanager
def open_build(
    corpus: Corpus,
    corpora: Mapping[str, Corpus],
    *,
    files: Sequence[InputFile],
) -> Iterator["Build"]:
    """Yield a run whose output the caller has locked; the workers stop when the block ends.

    Args:
        corpus: The corpus whose command this is.
        corpora: The corpus of each source.
        files: The input files.

    Raises:
        UserError: A model cannot be loaded, or the engine does not answer.
    """
    silence_beam()
    options = corpus.options
    work_bytes = int(sum(file.bytes for file in files) * corpus_fraction(options.part))
    workers = num_workers(options.workers, work_bytes=work_bytes)
    if not workers and options.watch:
        workers = 1  # a record that kills its process then kills a child, and the driver names it
    if not has_compiled_kernels():
        _LOG.info("kernels are compiled first, once on this machine: up to 40 seconds")
    preload = ("pipelines.plans", "pipelines.kernel_cache")  # not Beam, which only the driver needs
    with Runner(options.beam_args, num_workers=workers, preload=preload) as runner:
        yield Build(corpus, corpora, files=files, runner=runner)


class Build:
    """A run that holds the lock on its output."""

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
            runner: The runner that runs the items.
        """
        self.options = corpus.options
        self.corpus = corpus
        self.corpora = corpora
        self.input_formats = {name: source.input_format for name, source in corpora.items()}
        self.files = files
        self.left_out: Mapping[InputFile, str] = {}
        """Inputs that cannot be read, with the reasons; the report lists them."""
        self.failed: dict[InputFile, str] = {}
        """Files that a watch could not process, with the reasons."""
        self.first_seen: Mapping[InputFile, float] = {}
        """When each file was first seen, in seconds since 1970, if this is known."""
        self.output = self.options.output
        self.runner = runner
        run = uuid.uuid4().hex
        steps: StepsInfo = runner.call_in_worker(describe_run, (self.options, run))
        job = Job(
            options=self.options,
            corpora=dict(corpora),
            versions=segment_versions(steps.library_versions, corpora),
            run=run,
        )
        self.work = job.work
        self.spec = JobSpec(
            corpus=corpus,
            job=job,
            steps=steps,
            semantic={
                **semantic_options(self.options, steps.fingerprints, affects=(SEGMENTS, DATASET)),
                **other_corpora(corpora, corpus),
                **corpus.code(),
            },
            number=0,
            workers=runner.num_workers,
        )
        """The values of the run's jobs; `number`, `base` and so on are set for each job."""

    def existing(self) -> Manifest | None:
        """Return the manifest if the output already has the dataset of this run, else None.

        Raises:
            UserError: The output contains a different dataset.
        """
        if self.options.overwrite or not (self.output / manifests.NAME).exists():
            return None
        manifest = manifests.read_manifest(self.output)
        check_same(self.spec, manifest, advice=existing.REPLACE)
        existing.check_inputs(
            manifest,
            Listing(files=[*self.files], refused={}),
            input_formats=self.input_formats,
            output=self.output,
        )
        existing.check_files(manifest, output=self.output)
        self.clean_up()
        _LOG.info("%s is complete: nothing to do", self.output)
        return manifest

    def make(self) -> Manifest:
        """Make the dataset and return its manifest."""
        remove_unfinished(self.output)
        self.announce()
        self.check_first(self.files)
        with self._job(self.files, base=None) as (store, spec):
            self._run(store, spec)
            made = committed_manifest(store)
        self.clean_up()
        assert made is not None  # only a watch leaves out all files
        return made

    def add(
        self,
        base: Manifest | None,
        files: Sequence[InputFile],
    ) -> Manifest | None:
        """Make a generation of these files, and return the manifest that contains it.

        Files that already have segments are not processed again. Segments of other files stay. The
        ledger names the files from the end of `map` until they are in the manifest. A watch
        leaves out files that cannot be processed.

        Args:
            base: The manifest of the dataset to extend; None for the first generation.
            files: Input files, in any order.

        Returns:
            The new manifest; `base` if no file could be processed.

        Raises:
            UserError: The generation cannot be made; the message says why and what to do.
        """
        number = 1 if base is None else len(base.generations) + 1
        added = quantity(len(files), "file")
        _LOG.info("generation %d: %s, %.1f MB", number, added, _megabytes(files))
        with self._job(files, base=base, grows=True) as (store, spec):
            self._run(store, spec)
            self.failed.update(processed_input(store).failed)
            made = committed_manifest(store) if processed_input(store).files else base
            names = [item.name for item in planned_splits(store).items]
        try:
            Ledger(self.output).close()
            if made is not base and not self.options.keep_segments:
                forget_mapped(self.work / "map", [f for f in files if f not in self.failed], names)
                remove_stage_files(self.work)
        except (UserError, OSError) as error:  # the generation is made anyway
            _LOG.warning("files that are no longer needed are not deleted: %s", error)
        return made

    def process_ahead(self, files: Sequence[InputFile]) -> dict[InputFile, int]:
        """Process files whose generation is not due yet, and return each file's number of tokens.

        Files that cannot be processed are left out; `failed` names them.
        """
        counts: Counter[tuple[str, str]] = Counter()
        if files:
            with self._job(files, base=None, grows=True) as (store, spec):
                self._run(store, spec, only_segments=True)
                found = processed_input(store)
            self.failed.update(found.failed)
            for split in (split for record in found.records for split in record.splits):
                counts[split.name] += split.tokens
        return {file: counts[file.name] for file in files if file not in self.failed}

    def process_part(self) -> None:
        """Process the shares of this machine and log the next step."""
        self.announce()
        self.check_first(self.files)
        with self._job(self.files, base=None) as (store, spec):
            self._run(store, spec, only_segments=True)
            log_part(spec.job, planned_splits(store), processed_input(store).records)

    @contextmanager
    def _job(
        self, files: Sequence[InputFile], *, base: Manifest | None, grows: bool = False
    ) -> Iterator[tuple[JobStore, JobSpec]]:
        """Yield the store and the values of a job for these files."""
        spec = replace(
            self.spec,
            number=next_number(self.output),
            base=base.number if base else 0,
            grows=grows,
            begun=time.time(),
        )
        store = JobStore(self.work, uuid.uuid4().hex)
        inputs = JobFiles(files=files, left_out=self.left_out, first_seen=self.first_seen)
        with store.in_memory() if self.runner.local else nullcontext():
            store.put(SPEC, spec)
            store.put(FILES, inputs)
            yield store, spec
            if not self.runner.local:  # after an error an engine may still run the job
                store.forget()

    def _run(self, store: JobStore, spec: JobSpec, *, only_segments: bool = False) -> None:
        # This import loads Beam, which takes a second; a complete dataset does not need it.
        from pipelines.pipeline import run_job  # noqa: PLC0415

        run_job(store, spec, self.runner, only_segments=only_segments)

    def check_first(self, files: Sequence[InputFile], *, base: Manifest | None = None) -> None:
        """Check that each source of these files can be read and has the fields that options name.

        The check runs before any file is processed.

        Args:
            files: The files, sorted by source and path.
            base: The manifest of the dataset that the files are added to, if there is one.

        Raises:
            UserError: No record of a source can be read; the message shows what its records
                contain.
        """
        if self.options.part == (MERGE,):
            return
        known = frozenset(base.sources() if base else ())
        first = FirstFiles(job=self.spec.job, files=files, known=known)
        check_first_records(
            first.unmapped(self.spec.steps.fingerprints), call=self.runner.call_in_worker
        )

    def announce(self) -> None:
        """Log the inputs and libraries, and warnings about options."""
        libraries = ", ".join(self.spec.steps.library_versions.values())
        size = (
            f"{quantity(len(self.files), 'file')}, {_megabytes(self.files):.1f} MB; "
            if self.files
            else ""
        )
        _LOG.info("%s%s", size, libraries)
        if unused := self.spec.steps.unused_end:
            _LOG.info(
                "documents end with the id %d, as in GLM, and not with the tokenizer's own %s: "
                "give --eos '%s' for a model that was trained with that token",
                self.spec.steps.tokenizer.special["eos"],
                unused,
                unused,
            )
        for warning in self.spec.quality.warnings(self.options.languages):
            _LOG.warning("%s", warning)

    def clean_up(self) -> None:
        """Delete all intermediate files, unless the options keep them."""
        if not (self.options.keep_segments or is_share(self.options.part)):
            remove_work(self.work)


def check_same(spec: JobSpec, manifest: Manifest, *, advice: str) -> None:
    """Check that a dataset was made by the corpus of a job, with its options.

    Args:
        spec: The job.
        manifest: The manifest of the dataset.
        advice: Advice for the user if the dataset differs.

    Raises:
        UserError: The dataset differs; the message names the options that differ.
    """
    options = spec.job.options
    output = options.output
    existing.check_corpus(manifest, spec.corpus.spec.name, output=output, advice=advice)
    existing.check_options(
        manifest,
        spec.semantic,
        output=output,
        advice=advice,
        files=existing.OptionFiles(
            tokenizers=(spec.steps.tokenizer, manifest.tokenizer),
            given=(given_paths(options, spec.steps.fingerprints), recorded_paths(output)),
        ),
    )


def next_number(output: AnyPath) -> int:
    """Return the number of the manifest that the next job makes."""
    current = manifests.read_current_manifest(output)
    return current.number + 1 if current else 1


def _megabytes(files: Sequence[InputFile]) -> float:
    return sum(file.bytes for file in files) / 1e6
