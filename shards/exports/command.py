"""`python -m shards export`: writes a dataset as files that another project trains on."""

import time
from collections import Counter
from dataclasses import MISSING, dataclass
from pathlib import Path

from shards.commands.command import Command
from shards.commands.flags import local_path, option, positive
from shards.commands.output import print_line, quantity
from shards.dataset_commands import dataset_word
from shards.errors import UserError
from shards.exports.export import KEPT, WRITTEN, export_origin, write_export
from shards.exports.formats import (
    FORMATS,
    LLM_C,
    PREFIX,
    TOKENS_PER_FILE,
    ExportSettings,
    check_flags,
    files,
    notes,
)
from shards.exports.split import ExportedSplit
from shards.manifest import TRAIN, VALIDATION
from shards.reader import Dataset
from shards.removals import current_removals


@dataclass(frozen=True, kw_only=True)
class ExportFiles(Command):
    """Export a dataset in the format of llm.c, datatrove, OLMo or NumPy."""

    dataset: str = dataset_word()
    to: str = option(MISSING, required=True, choices=tuple(FORMATS))
    """Project that will read the files."""
    output: Path = option(MISSING, required=True, type=local_path, metavar="DIR")
    """Empty folder for the files."""
    source: tuple[str, ...] = option((), action="append", metavar="NAME")
    """Export only this source; may be repeated. Default: all sources."""
    prefix: str | None = option(None, metavar="NAME")
    """llm.c: prefix of the file names. Default: fineweb."""
    tokens_per_file: int | None = option(None, type=positive, metavar="N")
    """llm.c: maximum number of tokens per file. Default: 100M."""
    copy: bool = option(False)
    """Copy all files instead of creating hard links."""

    def run(self) -> None:
        """Export the dataset; print a line for each file and a summary at the end."""
        dataset = Dataset.open(self.dataset)
        output = self.output
        _check_apart(dataset, output)
        settings = self._settings(dataset)
        newest, removed = current_removals(dataset.directory, dataset.manifest)
        splits = {
            split: ExportedSplit(dataset, split, sources=settings.sources, removed=removed)
            for split in (TRAIN, VALIDATION)
        }
        planned = files(splits, settings)
        origin = export_origin(dataset.manifest, newest, settings)
        start = time.perf_counter()
        ways: Counter[str] = Counter()
        num_bytes = 0
        for file, how in write_export(output, origin, planned):
            ways[how] += 1
            size = (output / file.path).stat().st_size
            num_bytes += size
            said = "" if how == WRITTEN else f": {how}"
            of = f"{ways.total()} of {len(planned)}"
            print_line(f"{size:>16,}  {of:>14}  {file.path}{said}", flush=True)
        seconds = time.perf_counter() - start
        tokens, documents = (
            sum(getattr(exported, name) for exported in splits.values())
            for name in ("tokens", "documents")
        )
        words = {WRITTEN: "written", KEPT: "already there"}
        counts = ", ".join(
            f"{count:,} {words.get(how, f'by {how}')}" for how, count in ways.items()
        )
        print_line(
            f"{num_bytes:>16,}  bytes in {output}: {tokens:,} tokens of "
            f"{quantity(documents, 'document')}; {counts}; {num_bytes / 1e6 / seconds:,.0f} MB/s"
        )
        for note in notes(splits, settings, output):
            print_line(note)

    def _settings(self, dataset: Dataset) -> ExportSettings:
        check_flags(self.to, prefix=self.prefix, tokens_per_file=self.tokens_per_file)
        for source in self.source:
            dataset.check_source(source)
        is_llm_c = self.to == LLM_C
        return ExportSettings(
            format=self.to,
            sources=tuple(sorted(set(self.source or dataset.sources))),
            prefix=(self.prefix or PREFIX) if is_llm_c else "",
            tokens_per_file=(self.tokens_per_file or TOKENS_PER_FILE) if is_llm_c else 0,
            copy=self.copy,
        )


def _check_apart(dataset: Dataset, output: Path) -> None:
    if dataset.directory.resolve() in (output.resolve(), *output.resolve().parents):
        raise UserError(f"--output {output} is inside the dataset's folder: give another folder.")
