"""Reads the records that a run rejected again, into a dataset of their own.

    python -m pipelines.replay build/wudao --output build/mended
    python -m pipelines.replay build/wudao --output build/mended --bad-utf8 replace --nul remove

They are read by path, offset and length, as the ordinary run of their corpus would read them, with
the options of the dataset unless others are given. A record keeps its source, path and position,
and thereby its place in the order.
"""

import argparse
import logging
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from pipelines.corpus.flags import parse
from pipelines.corpus.options import Options
from pipelines.corpus.recipe import corpus_module, is_module, load_recipe
from pipelines.corpus.sources import MODULE, Corpus
from pipelines.engine.flags import beam_flags
from pipelines.engine.imports import keep_pandas_out
from pipelines.readers.reading import splits
from pipelines.readers.record import MAX_RECORD_BYTES
from pipelines.readers.rejects import Rejects, rejected_places
from pipelines.replay.original import check_unchanged, entries_of, find_again
from pipelines.run.origin import recorded_options
from pipelines.run.output import check_apart
from shards.command import Parser, exit_code, log_plainly
from shards.errors import UserError
from shards.flags import flag_of, names, options_of, positive
from shards.manifest import NAME, WORK, Manifest, parse_dataset, read_manifest
from shards.storage.files import shape_expected
from shards.storage.remote import AnyPath

PROGRAM = "pipelines.replay"

_FILES = ("tokenizer", "lid_model", "decontaminate", "url_blocklist", "classifier", "perplexity")
_MODULE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_LOG = logging.getLogger("corpusmill")


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""

    def work() -> None:
        run(argv)

    keep_pandas_out()
    log_plainly()
    return exit_code(PROGRAM, work, stopped="the same command goes on from here")


def run(argv: Sequence[str]) -> Manifest:
    """Make the dataset that the command line asks for and return its manifest.

    Raises:
        UserError: It cannot be made; the message says why and what to do.
    """
    if not argv or (argv[0].startswith("-") and argv[0] not in ("-h", "--help")):
        raise UserError("name the dataset first: python -m pipelines.replay DATASET --output DIR")
    end = argv.index("--") if "--" in argv else len(argv)
    ours, rest = _parser().parse_known_args(list(argv[:end]))
    directory, number = parse_dataset(ours.dataset)
    manifest = read_manifest(directory)
    manifest = manifest if number is None else manifest.as_of(number)
    module = _module(ours.corpus or manifest.corpus)
    recipe = load_recipe(module)
    with shape_expected(directory / NAME, "build the dataset again"):
        recorded = recorded_options(directory, manifest, recipe.options)
        defaults = {**recorded, "max_reject_rate": 1.0}
        options, words = parse(
            recipe.options,
            [*rest, *argv[end:]],
            program=PROGRAM,
            about=recipe.about,
            defaults=defaults,
        )
    options = _completed(options, manifest, directory)
    rejects = Rejects(
        folder=options.output / WORK / "rejects",
        dataset=manifest.identity,
        reasons=ours.reasons,
        bad_utf8=ours.bad_utf8,
        nul=ours.nul,
        max_record_bytes=ours.max_record_bytes,
    )
    same = {name for name in defaults if getattr(options, name) == defaults[name]}
    return replay(
        (directory, manifest),
        Corpus(module, options, rejects),
        unchanged=same,
        flags=beam_flags(words),
    )


def replay(
    dataset: tuple[AnyPath, Manifest],
    corpus: Corpus,
    *,
    unchanged: set[str],
    flags: Sequence[str] = (),
) -> Manifest:
    """Make a dataset of rejected records, resume it, or find it complete.

    Args:
        dataset: The dataset that rejected them and its manifest.
        corpus: Its corpus, with the options of the new dataset and the rejects as its readers.
        unchanged: Options that must mean the same as for the old dataset.
        flags: Flags for Beam.

    Raises:
        UserError: It cannot be made; the message says why and what to do.
    """
    # It takes a second to load, --help takes none.
    from pipelines.run.build import opened  # noqa: PLC0415 - see above
    from pipelines.run.ready import check_ready  # noqa: PLC0415 - see above

    check_ready(corpus.options, corpus=corpus.recipe.name, flags=flags)
    directory, manifest = dataset
    options, rejects = corpus.options, corpus.reader_factory
    assert isinstance(rejects, Rejects)
    places = rejected_places(directory, manifest, reasons=rejects.reasons)
    corpora = _corpora(corpus, manifest)
    entries = entries_of(manifest)
    files = find_again(
        directory,
        places,
        moved=options.input,
        patterns={name: source.recipe.pattern for name, source in corpora.items()},
        default_name=corpus.recipe.name,
    )
    corpora = {file.source: corpora[file.source] for file in files}
    readings = {name: source.reading for name, source in corpora.items()}
    with shape_expected(directory / NAME, "build the dataset again"):
        size = int(manifest.options["split_bytes"])
    check_unchanged(files, entries, directory=directory, readings=readings, split_bytes=size)
    with opened(corpus, corpora, files=files, flags=flags) as made:
        _check_facts(manifest, made.chain.facts, unchanged=unchanged)
        complete = made.existing()
        if complete is not None:
            return complete
        for file in files:
            key = file.source, file.relative
            chain = splits(file, readings[file.source], split_bytes=options.split_bytes)
            known = entries[key].crc32c
            same = len(known) == len(chain) and (len(known) == 1 or size == options.split_bytes)
            rejects.write(places[key], chain, crc32c=known if same else None)
        rows = sum(table.num_rows for table in places.values())
        _LOG.info("%s rejected records in %d files", f"{rows:,}", len(files))
        return made.make()


def _corpora(corpus: Corpus, manifest: Manifest) -> dict[str, Corpus]:
    """Return the corpus of each source of a dataset."""
    shared = {field.name: getattr(corpus.options, field.name) for field in fields(Options)}
    corpora = {source: corpus for source, _ in entries_of(manifest)}
    for source, entry in manifest.options.get("corpora", {}).items():
        module = _module(entry.get(MODULE, entry["corpus"]))
        options_class = load_recipe(module).options
        values: dict[str, Any] = {**shared, **options_of(options_class, entry)}
        corpora[source] = Corpus(module, options_class(**values), corpus.reader_factory)
    return corpora


def _module(name: str) -> str:
    module = name if "." in name else f"pipelines.{name}"
    if _MODULE.fullmatch(name) and not is_module(module):
        module = corpus_module(name) or module
    if not _MODULE.fullmatch(module) or not is_module(module):
        raise UserError(
            f"there is no module {module}, which should hold the dataset's corpus {name!r}: give "
            "--corpus PACKAGE.MODULE, the module whose command made the dataset"
        )
    return module


def _completed(options: Options, manifest: Manifest, directory: AnyPath) -> Options:
    """Return the options with an absolute output.

    Raises:
        UserError: The path of a file that the run needs is unknown, or an option does not apply.
    """
    for name in _FILES:
        if manifest.options.get(name) and not getattr(options, name) and name != "lid_model":
            made_with = f" ({manifest.tokenizer.name})" if name == "tokenizer" else ""
            raise UserError(
                f"{directory} does not record the path of its {name.replace('_', ' ')}{made_with}: "
                f"give {flag_of(name)}"
            )
    if options.plan:
        raise UserError("--plan estimates runs over whole corpora: leave it out here")
    if options.part:
        raise UserError("replay does its work in one run: leave --part out")
    if options.output == Path():
        raise UserError("--output is missing: the folder of the new dataset")
    output = options.output.absolute()
    if _same(output, directory):
        raise UserError(
            f"--output {options.output} is the dataset whose rejects are replayed; they go into a "
            "dataset of their own: choose another folder"
        )
    check_apart(str(directory), output)
    return replace(options, output=output)


def _same(one: AnyPath, other: AnyPath) -> bool:
    if isinstance(one, Path) and isinstance(other, Path):
        return one.resolve() == other.resolve()
    return one == other


def _check_facts(manifest: Manifest, facts: Mapping[str, Any], *, unchanged: set[str]) -> None:
    """Check that options left unchanged still refer to the same files."""
    names = [name for name in _FILES if name in unchanged]
    if {"quality", "threshold"} <= unchanged:
        names.append("quality")
    for name in names:
        if name in facts and facts[name] != manifest.options[name]:
            flag = flag_of(name)
            raise UserError(
                f"{flag} no longer means what it meant when the dataset was made: its file "
                f"changed, or this version of corpusmill reads it otherwise. Give {flag} to replay "
                "with what it means now"
            )


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=f"python -m {PROGRAM}",
        usage="python -m pipelines.replay DATASET --output DIR [flags of DATASET's corpus]",
        description="Read the records that a run rejected again, into a dataset of their own.",
        epilog="All other flags are those of the corpus (python -m pipelines.CORPUS --help), with "
        "the values that made DATASET as defaults. --input [NAME=]PATH says where files are now.",
    )
    add = parser.add_argument
    add("dataset", metavar="DATASET", help="the dataset that rejected them; it is not changed")
    add(
        "--reasons",
        type=names,
        default=(),
        metavar="LIST",
        help="replay these rejects alone, as in bad-utf8",
    )
    add(
        "--bad-utf8",
        choices=("reject", "replace"),
        default="reject",
        help="replace: invalid UTF-8, and lone surrogates in JSON, become U+FFFD",
    )
    add(
        "--nul",
        choices=("reject", "remove"),
        default="reject",
        help="remove: take NUL characters out of texts",
    )
    add(
        "--max-record-bytes",
        type=positive,
        default=MAX_RECORD_BYTES,
        metavar="N",
        help="a longer record is rejected as too-long. Default: 32 MiB",
    )
    add("--corpus", metavar="MODULE", help="the module that holds the corpus, if not pipelines.*")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
