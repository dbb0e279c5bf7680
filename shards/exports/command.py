"""`python -m shards export`: a dataset as the files that another project trains on."""

import time
from dataclasses import MISSING, dataclass
from pathlib import Path

from shards.command import Command
from shards.dataset_commands import dataset_word
from shards.errors import UserError
from shards.exports.export import KEPT, WRITTEN, Export, Made, Origin
from shards.exports.formats import NAMES, Choices, files, notes, opened_with, settled
from shards.exports.kept import all_removed, kept
from shards.exports.progress import Progress
from shards.flags import local_path, option, positive
from shards.manifest import TRAIN, VALIDATION
from shards.reader import Dataset
from shards.shown import print_line


@dataclass(frozen=True, kw_only=True)
class ExportFiles(Command):
    """Write the files that another project trains on: llm.c, datatrove, OLMo, NumPy, MDS."""

    dataset: str = dataset_word()
    to: str = option(
        MISSING, "the project whose layout the files get", required=True, choices=NAMES
    )
    output: Path = option(
        MISSING, "an empty folder for them", required=True, type=local_path, metavar="DIR"
    )
    source: tuple[str, ...] = option(
        (),
        "only this source; may be repeated. Default: all",
        action="append",
        metavar="NAME",
    )
    prefix: str | None = option(
        None, "llm.c: how names of files begin. Default: fineweb", metavar="NAME"
    )
    tokens_per_file: int | None = option(
        None,
        "llm.c, mds: at most so many in a file. Default: 100M; of mds 64 MiB",
        type=positive,
        metavar="N",
    )
    sequence_length: int | None = option(
        None,
        "mds: samples of N tokens, whatever documents they are of. Default: a sample is a document",
        type=positive,
        metavar="N",
    )
    copy: bool = option(False, "link nothing: every file has bytes of its own")

    def run(self) -> None:
        """Export the dataset, with a line for each file and a few at the end."""
        dataset = Dataset.open(self.dataset)
        output = self.output
        _check_apart(dataset, output)
        choices = Choices(
            format=self.to,
            sources=self.source or None,
            prefix=self.prefix,
            tokens_per_file=self.tokens_per_file,
            sequence_length=self.sequence_length,
        )
        settings = settled(choices, dataset.manifest.tokenizer, dataset.sources)
        now, removed = all_removed(dataset)
        splits = {
            split: kept(dataset, split, sources=settings.sources, removed=removed)
            for split in (TRAIN, VALIDATION)
        }
        planned = list(files(splits, settings))
        work = Export(output, Origin.of(dataset, now, settings), copy=self.copy)
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
            sum(getattr(split, field) for split in splits.values())
            for field in ("tokens", "documents")
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
