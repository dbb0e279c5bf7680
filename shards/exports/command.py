"""`python -m shards export`: a dataset as the files that another project trains on."""

import argparse
import time
from collections import Counter
from pathlib import Path

from shards.errors import UserError
from shards.exports import llm_c
from shards.exports.export import KEPT, WRITTEN, Origin, write_export
from shards.exports.file import Settings
from shards.exports.formats import FORMATS, LLM_C, check_flags, files, notes
from shards.exports.stream import split_stream
from shards.flags import local_path, positive
from shards.manifest import TRAIN, VALIDATION
from shards.reader import Dataset
from shards.removals import removed_by_now
from shards.shown import print_line


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the command, but the dataset."""
    parser.add_argument(
        "--to", required=True, choices=tuple(FORMATS), help="the project whose layout the files get"
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
        help="llm.c: at most so many in a file. Default: 100M",
    )
    parser.add_argument(
        "--copy", action="store_true", help="link nothing: every file has bytes of its own"
    )


def export(options: argparse.Namespace) -> None:
    """Export a dataset, with a line for each file and a few at the end."""
    dataset = Dataset.open(options.dataset)
    output = options.output
    _check_apart(dataset, output)
    settings = _settings(options, dataset)
    newest, removed = removed_by_now(dataset.directory, dataset.manifest)
    streams = {
        split: split_stream(dataset, split, sources=settings.sources, removed=removed)
        for split in (TRAIN, VALIDATION)
    }
    planned = files(streams, settings)
    origin = Origin.of(dataset.manifest, newest, settings)
    start = time.perf_counter()
    ways: Counter[str] = Counter()
    num_bytes = 0
    for file, how in write_export(output, origin, streams, planned):
        ways[how] += 1
        size = (output / file.path).stat().st_size
        num_bytes += size
        said = "" if how == WRITTEN else f": {how}"
        of = f"{ways.total()} of {len(planned)}"
        print_line(f"{size:>16,}  {of:>14}  {file.path}{said}", flush=True)
    seconds = time.perf_counter() - start
    tokens, documents = (
        sum(getattr(stream, name) for stream in streams.values())
        for name in ("tokens", "documents")
    )
    words = {WRITTEN: "written", KEPT: "were there"}
    counts = ", ".join(f"{count:,} {words.get(how, f'by {how}')}" for how, count in ways.items())
    print_line(
        f"{num_bytes:>16,}  bytes in {output}: {tokens:,} tokens of {documents:,} documents; "
        f"{counts}; {num_bytes / 1e6 / seconds:,.0f} MB/s"
    )
    for note in notes(streams, settings, output):
        print_line(note)


def _settings(options: argparse.Namespace, dataset: Dataset) -> Settings:
    check_flags(options.to, prefix=options.prefix, tokens_per_file=options.tokens_per_file)
    for source in options.source or ():
        dataset.check_source(source)
    is_llm_c = options.to == LLM_C
    return Settings(
        format=options.to,
        sources=tuple(sorted(set(options.source or dataset.sources))),
        prefix=(options.prefix or llm_c.PREFIX) if is_llm_c else "",
        tokens_per_file=(options.tokens_per_file or llm_c.TOKENS_PER_FILE) if is_llm_c else 0,
        copy=options.copy,
    )


def _check_apart(dataset: Dataset, output: Path) -> None:
    folder = dataset.directory
    if isinstance(folder, Path) and folder.resolve() in (
        output.resolve(),
        *output.resolve().parents,
    ):
        raise UserError(f"--output {output} lies in the dataset's own folder: name another one.")
