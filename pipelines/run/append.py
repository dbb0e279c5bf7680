"""A dataset grows: files that it has not seen become further generations.

unseen files ─▶ ledger ─▶ map, dedup against what is there, merge ─▶ manifest ─▶ ledger closed
"""

import itertools
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from pipelines.corpus.options import Options
from pipelines.corpus.recipe import load_recipe
from pipelines.corpus.sources import Corpus, list_corpora
from pipelines.inputs.files import InputFile, Listing
from pipelines.readers.reading import Reading
from pipelines.run import existing
from pipelines.run.build import Build, Splits, started
from pipelines.run.commit import Lag, clean_up
from pipelines.run.existing import Unseen, find_unseen
from pipelines.run.ledger import Ledger
from pipelines.run.ready import check_ready
from pipelines.segments.plan import Earlier
from shards import manifest as manifests
from shards.errors import UserError
from shards.manifest import WORK, Manifest, held
from shards.storage.remote import AnyPath

_LOG = logging.getLogger("corpusmill")

_BYTES_PER_TOKEN = 3
"""Of an input file, until some are mapped."""

_ADVICE = "Give the options that it was made with, or another --output"


def append(module: str, options: Options, *, flags: Sequence[str] = ()) -> Manifest:
    """Add what the dataset has not seen, in one generation or, with --every-tokens, in several.

    A generation that an earlier run had begun is finished first. Without a dataset the first
    generation begins one.

    Args:
        module: The module that holds the corpus's RECIPE.
        options: Complete options, as `completed` returns them.
        flags: Flags for Beam.

    Raises:
        UserError: The dataset cannot grow by this input; the message says why and what to do.
    """
    check_ready(options, corpus=load_recipe(module).name, flags=flags)
    listing, corpora = list_corpora(module, options)
    corpus, output = Corpus(module, options), options.output
    files, readings = listing.files, {name: each.reading for name, each in corpora.items()}
    with held(output):
        base = read_base(output)
        begun = _begun(base, files, output)
        new = _new_files(base, listing, output=output, readings=readings, options=options)
        names = {(file.source, file.relative) for file in begun}
        waiting = {file for file in new if (file.source, file.relative) not in names}
        if base is not None and not begun and not waiting:
            with started(corpus, corpora, files=(), flags=flags) as run:
                # Who has edited a filter would think that it was applied.
                run.check_same(base, advice=_ADVICE)
            if not options.keep_segments:
                clean_up(output / WORK)  # of a run that was killed at its very end
            _LOG.info("%s has all %d files of the input: nothing is new", output, len(files))
            return base
        with started(corpus, corpora, files=[*begun, *waiting], flags=flags) as run:
            run.left_out = listing.refused
            check_base(run, base)
            existing.remove_leftovers(output)
            run.announce()
            if begun:
                _LOG.info("the generation that an earlier run had begun is finished first")
                base = grow(run, begun)
            run.check_first([file for file in files if file in waiting], base=base)
            for part in _parts(run, [file for file in in_turn(files) if file in waiting]):
                base = grow(run, part)
            run.clean_up()
    assert base is not None  # there was a dataset, or there are files
    return base


def read_base(output: AnyPath) -> Manifest | None:
    """Return the manifest of the dataset in a folder; None if there is none yet."""
    if not (output / manifests.NAME).exists():
        return None
    return manifests.read_manifest(output)


def check_base(run: Build, base: Manifest | None) -> None:
    """Check that a run can add to a dataset; log which libraries have changed.

    Raises:
        UserError: The dataset was made by another corpus or with other options, or lacks what
            dedup needs of it.
        DamageError: Files of it are missing.
    """
    if base is None:
        return
    run.check_same(base, advice=_ADVICE)
    existing.check_files(base, output=run.output)
    for generation in base.generations:
        Earlier.of(generation, dedup=run.options.dedup)
    last = {**base.libraries, **base.generations[-1].libraries}
    now = run.job.versions
    for name in sorted({*last, *now}):
        if last.get(name) != now.get(name):
            _LOG.warning(
                "%s was %s and is now %s: the new generation is made with it, and says so",
                name,
                last.get(name),
                now.get(name),
            )


def grow(
    run: Build,
    files: Sequence[InputFile],
    *,
    lag: Lag = None,
    splits: Splits = MappingProxyType({}),
) -> Manifest:
    """Make one generation of exactly these files and return the manifest that has it.

    Args:
        run: Holds the lock on the dataset.
        files: In any order.
        lag: How long they waited, as in Build.add.
        splits: Those of files that were cut before; of these, mapped ones may be gone.

    Raises:
        UserError: It cannot be made.
    """
    return run.add(read_base(run.output), files, lag=lag, known=splits)


def _begun(base: Manifest | None, files: Sequence[InputFile], output: AnyPath) -> list[InputFile]:
    """Return the files of the generation that an earlier run had begun, as it named them.

    If one of them is not as it was then, the generation is given up: its files count as new.
    """
    ledger = Ledger(output)
    entry = ledger.open_entry(base.last_generation if base else 0)
    if entry is None:
        return []
    present = {_look(file): file for file in files}
    changed = [file.path for file in entry.files if _look(file) not in present]
    if not changed:
        return [present[_look(file)] for file in entry.files]
    _LOG.warning(
        "%s has changed or is gone since a generation of it was begun: that generation is given "
        "up, and what is there of its %d files counts as new",
        changed[0],
        len(entry.files),
    )
    ledger.close()
    return []


def _look(file: InputFile) -> tuple[str, str, int, int, str]:
    """Return what tells a file from a later version of it, wherever it lies."""
    return file.source, file.relative, file.bytes, file.mtime_ns, file.etag


def _new_files(
    base: Manifest | None,
    listing: Listing,
    *,
    output: AnyPath,
    readings: Mapping[str, Reading],
    options: Options,
) -> list[InputFile]:
    """Return the files to add, by source and path.

    Raises:
        UserError: A file that the dataset was made from has changed or is gone.
    """
    if base is None:
        return [*listing.files]
    unseen = find_unseen(base, listing, readings=readings, output=output, rehash=options.rehash)
    if not options.allow_changed:
        _check_seen_files(unseen, output)
        return [*unseen.new]
    if unseen.changed and options.dedup == "none":
        raise UserError(
            f"{len(unseen.changed)} files have changed since {output} was made of them, the first: "
            f"{min(file.relative for file in unseen.changed)}. --allow-changed would add all of "
            "their records again, because a dataset made with --dedup none does not know which of "
            "them it has"
        )
    for name in unseen.gone:
        _LOG.warning("%s is gone; what was made of it stays", name)
    for file, change in unseen.changed.items():
        _LOG.warning("%s/%s %s: its new records are taken", file.source, file.relative, change)
    return [*unseen.new, *unseen.changed]


def _check_seen_files(unseen: Unseen, output: AnyPath) -> None:
    changes = [f"{file.source}/{file.relative} {how}" for file, how in unseen.changed.items()]
    changes += [f"{name} is gone" for name in unseen.gone]
    if changes:
        more = f" (and {len(changes) - 1} more)" if len(changes) > 1 else ""
        raise UserError(
            f"files that {output} was made from are not as they were: {changes[0]}{more}. Put them "
            "back, or give --allow-changed: it goes on without those that are gone, and takes the "
            "new records of those that have changed. Nothing was added"
        )


def _parts(run: Build, files: Sequence[InputFile]) -> Iterator[list[InputFile]]:
    """Yield the files in parts, each of them a generation.

    With --every-tokens a part is the fewest of the remaining files, in the order of in_turn, that
    have so many tokens. Files are mapped some at a time until a part is full; those mapped beyond
    it are found again.
    """
    if not run.options.every_tokens:
        yield from [[*files]] if files else []
        return
    waiting = [*files]
    while waiting:
        part = _first_part(run, waiting)
        yield part
        waiting = waiting[len(part) :]


def in_turn(files: Sequence[InputFile]) -> list[InputFile]:
    """Return files in an order in which any beginning has about the same share of each source."""
    sizes: Counter[str] = Counter()
    for file in files:
        sizes[file.source] += file.bytes
    before: Counter[str] = Counter()
    ranks = {}
    for file in sorted(files, key=lambda file: (file.source, file.relative)):
        ranks[file] = before[file.source] / sizes[file.source]
        before[file.source] += file.bytes
    return sorted(ranks, key=lambda file: (ranks[file], file.source))


def _first_part(run: Build, files: Sequence[InputFile]) -> list[InputFile]:
    """Return the fewest files from the first on that have the tokens of a generation, mapped."""
    wanted = run.options.every_tokens
    part: list[InputFile] = []
    tokens = size = 0
    while len(part) < len(files) and tokens < wanted:
        # As many as seem to be missing, and one for each worker.
        goal = (wanted - tokens) * (size / tokens if tokens else _BYTES_PER_TOKEN)
        some: list[InputFile] = []
        chosen = 0
        for file in itertools.islice(files, len(part), None):
            if chosen >= goal and len(some) >= run.runner.num_workers:
                break
            some.append(file)
            chosen += file.bytes
        tokens_of: Counter[tuple[str, str]] = Counter()
        for record in run.map_phase(some).map_all():
            for segment in record.segments:
                tokens_of[record.source, record.relative] += segment.tokens
        for file in some:
            if tokens < wanted:
                part.append(file)
                tokens += tokens_of[file.source, file.relative]
                size += file.bytes
    return part
