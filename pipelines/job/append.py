"""Appends to a dataset: files that it does not contain become further generations.

new files ─▶ map ─▶ ledger ─▶ dedup with earlier generations, merge ─▶ manifest ─▶ ledger deleted
"""

import logging
from collections.abc import Mapping, Sequence

from pipelines.commit import existing
from pipelines.commit.existing import InputChanges, find_changes
from pipelines.commit.ledger import Ledger
from pipelines.corpus.options import Options
from pipelines.corpus.sources import (
    Corpus,
    corpus_inputs,
    input_specs,
    list_corpus_files,
    without_broken,
)
from pipelines.corpus.spec import load_spec
from pipelines.job.build import Build, check_same, open_build
from pipelines.job.ready import check_ready
from pipelines.plans import JobSpec
from pipelines.read.files import InputFile
from pipelines.read.input_format import InputFormat
from pipelines.read.listing import Listing
from pipelines.segments.index import PreviousGeneration
from shards.errors import UserError
from shards.maintenance.prune import remove_unfinished, remove_work
from shards.manifest import WORK, Manifest, lock_dataset, read_current_manifest
from shards.storage.remote import AnyPath

_LOG = logging.getLogger("corpusmill")

_ADVICE = "Give the options that it was made with, or another --output"


def append(module: str, options: Options) -> Manifest | None:
    """Add the files that the dataset does not contain yet as one generation.

    A generation that an earlier run started is finished first. If there is no dataset, the first
    generation creates it.

    Args:
        module: The module that holds the corpus as CORPUS.
        options: Complete options, as `completed` returns them.

    Returns:
        The manifest; None if there is no dataset and no file to make one from.

    Raises:
        UserError: The dataset cannot be extended with this input; the message says why and what to
            do.
    """
    check_ready(options, corpus=load_spec(module).name)
    listing, corpora = _listed(module, options)
    corpus, output = Corpus(module, options), options.output
    if not listing.files and read_current_manifest(output) is None:
        inputs = ", ".join(input_specs(options))
        _LOG.info("%s: there is no file yet that can be read; nothing was made", inputs)
        return None
    with lock_dataset(output):
        base = read_current_manifest(output)
        begun = {*unfinished_files(base, listing.files, output)}
        input_formats = {name: each.input_format for name, each in corpora.items()}
        new = _new_files(base, listing, output=output, input_formats=input_formats, options=options)
        waiting = [file for file in new if file not in begun]
        if base is not None and not begun and not waiting:
            with open_build(corpus, corpora, files=()) as run:
                # A user who has edited a filter would assume that the edited filter was applied.
                check_same(run.spec, base, advice=_ADVICE)
            if not options.keep_segments:
                remove_work(output / WORK)  # files of a run that was killed at its very end
            _LOG.info(
                "%s has all %d files of the input: nothing is new", output, len(listing.files)
            )
            return base
        with open_build(corpus, corpora, files=[*begun, *waiting]) as run:
            run.left_out = listing.refused
            made = grow(run, base, begun=[*begun], files=waiting)
            run.clean_up()
    return made


def _listed(module: str, options: Options) -> tuple[Listing, dict[str, Corpus]]:
    """Return the listing of the inputs, and the corpus of each source.

    With --append, empty or unreadable inputs are left for a later run; otherwise they are refused.
    """
    if not options.append:
        return list_corpus_files(module, options)
    inputs, corpora = corpus_inputs(module, options)
    listing = inputs.list_files()
    listing.log_remarks()
    if options.skip_unreadable:
        listing = without_broken(listing, corpora)
    if listing.refused:
        _LOG.warning(
            "%d files or folders of the input are left for a later run: %s",
            len(listing.refused),
            listing.named(),
        )
    return listing, corpora


def grow(
    run: Build,
    base: Manifest | None,
    *,
    begun: Sequence[InputFile],
    files: Sequence[InputFile],
) -> Manifest | None:
    """Add generations to a dataset from files that it does not contain.

    Args:
        run: The run, which holds the lock on the dataset.
        base: The manifest of the dataset; None to create a dataset.
        begun: The files of the generation that an earlier run started; it is made first.
        files: The files of a further generation; empty for none.

    Returns:
        The manifest with the new generations.

    Raises:
        UserError: A generation cannot be made.
    """
    check_base(run.spec, base)
    remove_unfinished(run.output)
    if not run.options.watch:  # a watch logs this once for all of its generations
        run.announce()
    if begun:
        _LOG.info("the generation that an earlier run started is finished first")
        base = run.add(base, begun)
    if not run.options.watch:
        run.check_first(sorted(files, key=lambda file: file.name), base=base)
    return run.add(base, files) if files else base


def check_base(spec: JobSpec, base: Manifest | None) -> None:
    """Check that a job can add to a dataset, and log which libraries have changed.

    Raises:
        UserError: The dataset was made by a different corpus or with different options, or lacks
            the files that dedup needs.
        DamageError: Files of the dataset are missing.
    """
    if base is None:
        return
    check_same(spec, base, advice=_ADVICE)
    existing.check_files(base, output=spec.job.options.output)
    for generation in base.generations:
        PreviousGeneration.of(generation, dedup=spec.job.options.dedup)
    last = {**base.libraries, **base.generations[-1].libraries}
    now = spec.job.versions
    for name in sorted({*last, *now}):
        if last.get(name) != now.get(name):
            _LOG.warning(
                "%s was %s and is now %s: the new generation is made with it, and records it",
                name,
                last.get(name),
                now.get(name),
            )


def unfinished_files(
    base: Manifest | None, files: Sequence[InputFile], output: AnyPath
) -> list[InputFile]:
    """Return the files of the generation that an earlier run started, as named in the ledger.

    If one of the files has changed since, the generation is given up, and its files count as new.
    """
    ledger = Ledger(output)
    entry = ledger.unfinished_entry(base.last_generation if base else 0)
    if entry is None:
        return []
    present = {(file.name, file.version): file for file in files}
    found = [present.get((file.name, file.version)) for file in entry.files]
    changed = [file.path for file, same in zip(entry.files, found, strict=True) if not same]
    if not changed:
        return [file for file in found if file]
    _LOG.warning(
        "%s has changed or is gone since a generation with it was started: that generation is "
        "given up, and those of its %d files that still exist count as new",
        changed[0],
        len(entry.files),
    )
    ledger.close()
    return []


def _new_files(
    base: Manifest | None,
    listing: Listing,
    *,
    output: AnyPath,
    input_formats: Mapping[str, InputFormat],
    options: Options,
) -> list[InputFile]:
    """Return the files of the input to add to the dataset.

    Raises:
        UserError: A file that the dataset was made from has changed or is gone.
    """
    if base is None:
        return [*listing.files]
    changes = find_changes(
        base, listing, input_formats=input_formats, output=output, rehash=options.rehash
    )
    if not options.allow_changed:
        _check_unchanged(changes, output)
        return [*changes.new]
    if changes.changed and options.dedup == "none":
        raise UserError(
            f"{len(changes.changed)} files have changed since {output} was made from them; the "
            f"first: {min(file.relative for file in changes.changed)}. --allow-changed would add "
            "all of their records again, because a dataset made with --dedup none cannot recognize "
            "the records that it has"
        )
    for name in changes.gone:
        _LOG.warning("%s is gone; its documents stay", name)
    for file, change in changes.changed.items():
        _LOG.warning("%s %s: its new records are added", "/".join(file.name), change)
    return [*changes.new, *changes.changed]


def _check_unchanged(changes: InputChanges, output: AnyPath) -> None:
    named = [f"{'/'.join(file.name)} {change}" for file, change in changes.changed.items()]
    named += [f"{name} is gone" for name in changes.gone]
    if named:
        more = f" (and {len(named) - 1} more)" if len(named) > 1 else ""
        raise UserError(
            f"files that {output} was made from have changed or are gone: {named[0]}{more}. "
            "Restore them, or give --allow-changed: it adds the new records of changed files, and "
            "continues without missing files. Nothing was added"
        )
