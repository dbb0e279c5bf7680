"""The commands on a dataset: `python -m shards inspect|verify|stats|remove|compact|…`.

The commands `view` and `export` are in the folders of the same names.
"""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import MISSING, dataclass, replace
from pathlib import Path
from typing import Any

from shards import show
from shards.commands.command import Command
from shards.commands.flags import WORD, MutuallyExclusive, count, counts, local_path, option
from shards.commands.output import print_line, print_lines, print_message, quantity
from shards.commands.table import called
from shards.errors import UserError
from shards.exports.megatron import megatron_blend
from shards.maintenance import compact, place, prune
from shards.maintenance.names import DocumentQuery, read_names
from shards.maintenance.remove import check_complete, remove, select
from shards.maintenance.verify import verify
from shards.manifest import TRAIN, VALIDATION, lock_dataset, parse_dataset, read_manifest
from shards.reader import Dataset
from shards.records import to_json
from shards.sampling import trace
from shards.sampling.plan import DataConfig, SamplingPlan
from shards.sampling.scatter import scatters_of_node
from shards.sampling.streams import check_scatters, streams_of
from shards.storage.files import delete, write_json
from shards.storage.lock import lock_dir
from shards.storage.remote import AnyPath, any_path

DAMAGED = 1


def dataset_word(help: str = "Folder of the dataset; DIR@N is the dataset at manifest N.") -> Any:
    """Return the option for the word that names a dataset."""
    return option(MISSING, help, flag=WORD, metavar="DIR")


@dataclass(frozen=True, kw_only=True)
class Inspect(Command):
    """Show a dataset on one screen, or one of its documents."""

    dataset: str = dataset_word()
    doc: int | None = option(None, type=int, metavar="N")
    """Show document N, counted from 0."""
    source: str | None = option(None)
    """Show a document of this source; the first one without --doc."""
    split: str = option(TRAIN, choices=(TRAIN, VALIDATION))
    """Split of the document."""
    all: bool = option(False)
    """Show all options, removals and sources."""

    def run(self) -> None:
        """Print the dataset or the document."""
        dataset = Dataset.open(self.dataset)
        if self.doc is None and self.source is None:
            print_lines(show.overview(dataset, everything=self.all))
        else:
            number = self.doc or 0
            print_lines(show.document(dataset, number, source=self.source, split=self.split))


@dataclass(frozen=True, kw_only=True)
class Stats(Command):
    """Show statistics of every source, and the account of all records."""

    dataset: str = dataset_word()

    def run(self) -> None:
        """Print the figures and the accounting."""
        print_lines(show.statistics(Dataset.open(self.dataset)))


@dataclass(frozen=True, kw_only=True)
class Verify(Command):
    """Read every file and check it against the manifest."""

    dataset: str = dataset_word()

    def run(self) -> int:
        """Print each problem; return exit code 1 if there are any."""
        dataset = Dataset.open(self.dataset)
        entries = dict(dataset.manifest.files())
        share = place.placed_share(dataset.directory)
        needed = None if share is None else dict(place.needed_files(dataset.manifest, share))
        read = entries if needed is None else needed
        num_bytes = sum(entry.bytes for entry in read.values())
        start = time.perf_counter()
        problems = print_lines(verify(dataset, needed=needed))
        seconds = time.perf_counter() - start
        speed = f"{num_bytes / 1e6 / seconds:,.0f} MB/s"
        verdict = quantity(problems, "problem") if problems else "ok"
        whose = (
            ""
            if share is None
            else f"; placed here: {share}, {quantity(len(entries), 'file')} in the whole"
        )
        print_line(f"{quantity(len(read), 'file')}, {num_bytes:,} bytes, {speed}: {verdict}{whose}")
        return DAMAGED if problems else 0


@dataclass(frozen=True, kw_only=True)
class Prune(Command):
    """Delete files that the manifest does not list."""

    dataset: str = dataset_word("Folder of the dataset.")
    days: int = option(prune.GRACE_DAYS, type=count, metavar="N")
    """Keep files that a manifest listed in the last N days, because they may still be in use."""
    dry_run: bool = option(False)
    """List the files without deleting them."""

    def run(self) -> None:
        """Delete the leftovers and print a line for each."""
        directory = any_path(self.dataset)
        read_manifest(directory)  # refuses a folder without a dataset before anything is locked
        with lock_dir(directory):
            _delete_leftovers(directory, days=self.days, dry_run=self.dry_run)


def _delete_leftovers(directory: AnyPath, *, days: int, dry_run: bool = False) -> None:
    """Delete files that no manifest has named for some days, and print a line for each."""
    now, freed = time.time(), 0
    for leftover in prune.leftovers(directory, read_manifest(directory)):
        is_old = now - leftover.replaced >= days * 86_400
        if is_old and not dry_run:
            delete(leftover.path)
        freed += leftover.bytes if is_old else 0
        state = "" if is_old else f": kept, because a manifest named it within {days} days (--days)"
        print_line(f"{leftover.bytes:>16,}  {leftover.path}{state}")
    print_line(f"{freed:>16,}  bytes {'would be freed' if dry_run else 'freed'}")


@dataclass(frozen=True, kw_only=True)
class Compact(Command):
    """Merge all generations into one, without the documents that were removed."""

    dataset: str = dataset_word("Folder of the dataset.")
    erase: bool = option(False)
    """Also delete all older files at once, including the text of removed documents."""

    def run(self) -> None:
        """Write the merged generation and commit it."""
        directory = any_path(self.dataset)
        read_manifest(directory)  # refuses a folder without a dataset before anything is locked
        with lock_dataset(directory):
            for line in self._compact(directory):
                print_line(line, flush=True)
            if self.erase:
                _delete_leftovers(directory, days=0)

    def _compact(self, directory: AnyPath) -> Iterator[str]:
        """Compact a dataset if there is a reason to; yield lines that report the work."""
        compaction = compact.Compaction(Dataset.open(directory))
        members, number = len(compaction.members), compaction.erasure.num_documents
        if members == 1 and not number:
            yield f"{directory}: nothing to compact: one generation and no removed documents"
            return
        yield from compaction.write()
        if number:  # before the manifest is replaced: the new manifest has no removals
            yield from compaction.erasure.clear_report()
        made = compaction.commit()
        without = f", {quantity(number, 'document')} left out" if number else ""
        yield f"{directory}: generations: {members}, now one, {made.name}{without}"
        if not self.erase:
            yield (
                f"readers of the older files continue until {called('shards prune')} {directory} "
                "deletes them"
            )


@dataclass(frozen=True, kw_only=True)
class Place(Command):
    """Copy the files that one node needs to its disk."""

    _MODE = MutuallyExclusive()

    dataset: str = dataset_word()
    nodes: tuple[int, ...] = option((1,), type=counts, metavar="N,N,…")
    """Number of ranks on each node."""
    node: int = option(0, type=count, metavar="I")
    """Index of the node, counted from 0."""
    scatters: int = option(1, type=count, metavar="S")
    """Number of scatters that the corpus is divided into."""
    to: Path | None = option(None, type=local_path, metavar="DISK")
    """Folder on the node's disk."""
    list: bool = option(False, exclusive=_MODE)
    """Only list the files."""
    check: bool = option(False, exclusive=_MODE)
    """Only check the files in DISK, or in DIR without --to."""

    def run(self) -> int:
        """Copy the files and print a line for each; return exit code 1 if a check finds damage."""
        dataset = Dataset.open(self.dataset)
        check_scatters(streams_of(dataset), self.scatters)
        scatters = scatters_of_node(self.scatters, nodes=self.nodes, node=self.node)
        share = place.NodeShare(scatters=tuple(scatters), num_scatters=self.scatters)
        print_line(f"node {self.node} of {len(self.nodes)}: {share}")
        if self.list:
            files = place.needed_files(dataset.manifest, share)
            print_lines(f"{entry.bytes:>16,}  {path}" for path, entry in files)
            return 0
        if self.check:
            copy = Dataset(self.to or dataset.directory, dataset.manifest)
            needed = dict(place.needed_files(dataset.manifest, share))
            problems = print_lines(verify(copy, needed=needed))
            print_line(f"{copy.directory}: {problems or 'no'} problems")
            return DAMAGED if problems else 0
        if self.to is None:
            raise UserError("--to DISK is missing: give a folder on the node's disk, or --list.")
        bytes_of: Counter[bool] = Counter()
        for path, num_bytes, is_copied in place.place(dataset, share, to=self.to):
            if is_copied:
                print_line(f"{num_bytes:>16,}  {path}", flush=True)
            bytes_of[is_copied] += num_bytes
        print_line(
            f"{bytes_of[True]:>16,}  bytes copied to {self.to}, {bytes_of[False]:,} already there; "
            "all checksums match"
        )
        return 0


@dataclass(frozen=True, kw_only=True)
class Megatron(Command):
    """Print the flags with which Megatron-LM reads the shards, with their weights."""

    data: tuple[str, ...] = option(MISSING, flag=WORD, nargs="+", metavar="DIR[:SOURCE][=WEIGHT]")
    """Data to read. Without weights, they are weighted by size."""
    output: Path | None = option(None, type=local_path, metavar="FILE")
    """Write the lists to this JSON file instead."""

    def run(self) -> None:
        """Print the flags and a summary of the data."""
        found = megatron_blend(self.data)
        print_line(found.arguments() if self.output is None else found.save(self.output))
        print_message(found.summary())


@dataclass(frozen=True, kw_only=True)
class Trace(Command, DataConfig):
    """Show the documents of a step, or the steps that see a document."""

    GROUPS = ("query",)
    _QUESTION = MutuallyExclusive(required=True)

    run_file: Path | None = option(
        None, flag=WORD, nargs="?", type=local_path, metavar="RUN", group=GROUPS[0]
    )
    """Training run: its folder or its run.json. Without it, describe the run by flags."""
    step: int | None = option(None, exclusive=_QUESTION, type=count, metavar="N")
    """Show the documents that step N trains on."""
    document: str | None = option(None, exclusive=_QUESTION, metavar="ID")
    """Show the steps that see this document: SHARD:ROW, PATH:POSITION, id or url."""
    until: int | None = option(None, type=count, metavar="N")
    """With --document: search the steps before N. Default: the run's --steps, else one epoch."""

    def run(self) -> None:
        """Print the documents of the step, or the steps that see the document."""
        run = self.sampling_plan() if self.run_file is None else SamplingPlan.load(self.run_file)
        tracer = trace.Tracer(run)
        if self.step is not None:
            print_lines(trace.step_lines(tracer, self.step))
        elif self.document is not None:
            until = run.steps if self.until is None else self.until
            print_lines(trace.document_lines(tracer, self.document, until=until))


@dataclass(frozen=True, kw_only=True)
class Remove(Command):
    """Remove documents from training, selected by id, URL or position."""

    dataset: str = dataset_word("Folder of the dataset.")
    documents: Path | None = option(None, type=local_path, metavar="FILE")
    """File with one document per line: SHARD:ROW, PATH:POSITION, id or url."""
    id: tuple[str, ...] = option((), action="append", metavar="NAME")
    """Document to remove, written as in --documents; may be repeated."""
    url: tuple[str, ...] = option((), action="append", metavar="PATTERN")
    """URLs of documents to remove; * matches any characters, including /; may be repeated."""
    reason: str = option("", metavar="TEXT")
    """Reason, which is stored in the manifest; do not include personal names."""
    dry_run: bool = option(False)
    """Show what would be removed, without removing it."""
    missing_ok: bool = option(False)
    """Continue if some of the names match no document."""
    report: Path | None = option(None, type=local_path, metavar="FILE")
    """Write the full result to this JSON file."""

    def run(self) -> None:
        """Remove the documents and print a summary."""
        names, directory = self._names(), self._directory()
        read_manifest(directory)  # refuses a folder without a dataset before anything is locked
        with nullcontext() if self.dry_run else lock_dataset(directory):
            dataset = Dataset.open(directory)
            selection = select(dataset, names, reason=self.reason)
            if not self.missing_ok and not (self.dry_run and selection.documents):
                check_complete(selection)
            print_lines(selection.lines(dry_run=self.dry_run))
            if not self.dry_run and selection.new:
                number = remove(directory, dataset.manifest, selection).number
                selection = replace(selection, removed_in=number)
        if self.report is not None:
            write_json(self.report, to_json(selection))
        if selection.removed_in is None:
            print_line("nothing was changed")
            return
        print_line(
            f"removed in manifest {selection.removed_in}: training skips these documents from now "
            "on (--follow runs from their next checkpoint; other runs when resumed with --data "
            f"{directory}@{selection.removed_in}; copies after {called('shards place')}). The text "
            f"is still on disk; erase it with: {called('shards compact')} {directory} --erase"
        )

    def _names(self) -> DocumentQuery:
        """Return the names and patterns that select the documents, after checking --reason."""
        if not self.dry_run and not self.reason.strip():
            raise UserError(
                "--reason is missing: give a reason, which the manifest stores, or --dry-run."
            )
        listed = [] if self.documents is None else read_names(self.documents)
        return DocumentQuery([*listed, *self.id], patterns=self.url)

    def _directory(self) -> AnyPath:
        directory, number = parse_dataset(self.dataset)
        if number is not None:
            raise UserError(f"{self.dataset}: remove changes the newest manifest; omit @{number}.")
        return directory
