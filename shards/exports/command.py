"""`python -m shards export`: a dataset as the files that another project trains on."""

import argparse
import time
from pathlib import Path

from shards.errors import UserError
from shards.exports.export import KEPT, WRITTEN, Export, Made, Origin
from shards.exports.formats import NAMES, Choices, files, notes, opened_with, settled
from shards.exports.kept import all_removed, kept
from shards.exports.progress import Progress
from shards.flags import local_path, positive
from shards.manifest import TRAIN, VALIDATION
from shards.reader import Dataset
from shards.shown import print_line


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the command, but the dataset."""
    parser.add_argument(
        "--to", required=True, choices=NAMES, help="the project whose layout the files get"
    )
    parser.add_argument(
        "--output", required=True, type=local_path, metavar="DIR", help="an empty folder for them"
    )
    parser.add_argument(
        "--source",
        action="append",
        metavar="NAME",
        help="only this source; may be repeated. Default: all",
    )
    parser.add_argument(
        "--prefix", metavar="NAME", help="llm.c: how names of files begin. Default: fineweb"
    )
    parser.add_argument(
        "--tokens-per-file",
        type=positive,
        metavar="N",
        help="llm.c, mds: at most so many in a file. Default: 100M; of mds 64 MiB",
    )
    parser.add_argument(
        "--sequence-length",
        type=positive,
        metavar="N",
        help="mds: samples of N tokens, whatever documents they are of. Default: a sample is a "
        "document",
    )
    parser.add_argument(
        "--copy", action="store_true", help="link nothing: every file has bytes of its own"
    )


def export(options: argparse.Namespace) -> None:
    """Export a dataset, with a line for each file and a few at the end."""
    dataset = Dataset.open(options.dataset)
    output = options.output
    _check_apart(dataset, output)
    choices = Choices(
        format=options.to,
        sources=None if options.source is None else tuple(options.source),
        prefix=options.prefix,
        tokens_per_file=options.tokens_per_file,
        sequence_length=options.sequence_length,
    )
    settings = settled(choices, dataset.manifest.tokenizer, dataset.sources)
    now, removed = all_removed(dataset)
    splits = {
        split: kept(dataset, split, sources=settings.sources, removed=removed)
        for split in (TRAIN, VALIDATION)
    }
    planned = list(files(splits, settings))
    work = Export(output, Origin.of(dataset, now, settings), copy=options.copy)
    progress = Progress(sum(file.bytes for file in planned))
    start = time.perf_counter()
    made = []
    for file in work.run(planned, progress=progress.write):
        progress.finish(file.bytes)
        made.append(file)
        of = f"{len(made)} of {len(planned)}"
        print_line(f"{file.bytes:>16,}  {of:>14}  {file.path}{_how(file)}", flush=True)
    seconds = time.perf_counter() - start
    num_bytes = sum(file.bytes for file in made)
    tokens, documents = (
        sum(getattr(split, field) for split in splits.values()) for field in ("tokens", "documents")
    )
    print_line(
        f"{num_bytes:>16,}  bytes in {output}: {tokens:,} tokens of {documents:,} documents; "
        f"{_counts(made)}; {num_bytes / 1e6 / seconds:,.0f} MB/s"
    )
    for note in notes(splits, settings):
        print_line(note)
    print_line(opened_with(splits[TRAIN], settings, output))


def _check_apart(dataset: Dataset, output: Path) -> None:
    folder = dataset.directory
    if isinstance(folder, Path) and folder.resolve() in (
        output.resolve(),
        *output.resolve().parents,
    ):
        raise UserError(f"--output {output} lies in the dataset's own folder: name another one.")


def _how(file: Made) -> str:
    return {WRITTEN: "", KEPT: ": was there"}.get(file.how, f": {file.how}")


def _counts(made: list[Made]) -> str:
    """Return how many files came about in which way."""
    kinds = dict.fromkeys(file.how for file in made)
    counts = {kind: sum(file.how == kind for file in made) for kind in kinds}
    words = {WRITTEN: "written", KEPT: "were there"}
    return ", ".join(f"{count:,} {words.get(kind, f'by {kind}')}" for kind, count in counts.items())
