"""Inspects and maintains datasets.

`python -m shards inspect|view|verify|stats|remove|compact|prune|place|export DIR`,
`python -m shards megatron DIR …`, `python -m shards trace RUN`
"""

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

from shards import compact, place, prune, show, trace
from shards.command import Parser, exit_code
from shards.erasure import Erasure
from shards.errors import UserError
from shards.exports.command import add_flags as add_export_flags
from shards.exports.command import export
from shards.exports.megatron import blends
from shards.flags import count, counts, local_path
from shards.manifest import (
    TRAIN,
    VALIDATION,
    Generation,
    held,
    parse_dataset,
    read_manifest,
)
from shards.names import Names, read_names
from shards.order.scatter import scatters_of_node
from shards.order.streams import check_scatters, streams_of
from shards.reader import Dataset
from shards.remove import Selection, remove
from shards.run import Run
from shards.run_flags import add_run_flags, run_of
from shards.shown import print_line, print_lines, print_note, tell
from shards.storage.lock import locked
from shards.storage.remote import AnyPath, any_path
from shards.takedown import Takedown, takedown, takedown_lines
from shards.verify import verify
from shards.view.command import add_flags as add_view_flags
from shards.view.command import view

OK = 0
DAMAGED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 well, 1 damage found, 2 refused."""

    def run() -> int:
        options = _parser().parse_args(arguments)
        code: int = options.command(options)
        return code

    return exit_code("shards", run, stopped="the same command goes on from here")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m shards", description="Inspect and maintain datasets.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    inspect = _command(commands, "inspect", "show a dataset on one screen, or one of its documents")
    inspect.set_defaults(command=_inspect)
    inspect.add_argument("--doc", type=int, metavar="N", help="show document N, counted from 0")
    inspect.add_argument("--source", help="one of this source (--doc 0 unless given)")
    inspect.add_argument("--split", choices=(TRAIN, VALIDATION), default=TRAIN)
    look = _command(
        commands, "view", "search and leaf through its documents, as pages in a browser"
    )
    look.set_defaults(command=_view)
    add_view_flags(look)
    check = _command(commands, "verify", "read every file and check it against the manifest")
    check.set_defaults(command=_verify)
    stats = _command(commands, "stats", "figures of every source, and the accounting")
    stats.set_defaults(command=_stats)
    clean = _command(commands, "prune", "delete what the manifest does not name")
    clean.set_defaults(command=_prune)
    clean.add_argument(
        "--days",
        type=count,
        default=prune.GRACE_DAYS,
        metavar="N",
        help="leave what a manifest named in the last N days: somebody may read it",
    )
    clean.add_argument("--dry-run", action="store_true", help="list it only")
    _add_compact(commands)
    _add_place(commands)
    _add_export(commands)
    _add_megatron(commands)
    _add_trace(commands)
    _add_remove(commands)
    return parser


def _add_compact(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = _command(commands, "compact", "make one generation of many, with the same documents")
    parser.set_defaults(command=_compact)
    parser.add_argument(
        "--erase",
        action="store_true",
        help="without what was removed, and delete every file that had it",
    )


def _add_place(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = _command(commands, "place", "copy what one node needs onto its disk")
    parser.set_defaults(command=_place)
    parser.add_argument(
        "--nodes", type=counts, default=(1,), metavar="N,N,…", help="ranks of each node"
    )
    parser.add_argument("--node", type=count, default=0, metavar="I", help="which node, from 0")
    parser.add_argument(
        "--scatters", type=count, default=1, metavar="S", help="pieces of the corpus"
    )
    parser.add_argument(
        "--to", type=local_path, metavar="DISK", help="a folder on the disk of the node"
    )
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--list", action="store_true", help="only list what it needs")
    modes.add_argument("--check", action="store_true", help="only check DISK, or DIR without --to")


def _add_export(commands: "argparse._SubParsersAction[Parser]") -> None:
    text = "write the files that another project trains on: llm.c, datatrove, OLMo, NumPy, MDS"
    parser = _command(commands, "export", text)
    parser.set_defaults(command=_export)
    add_export_flags(parser)


def _add_megatron(commands: "argparse._SubParsersAction[Parser]") -> None:
    text = "print the flags by which Megatron-LM reads the shards, with their weights"
    parser = commands.add_parser("megatron", help=text, description=text)
    parser.set_defaults(command=_megatron)
    parser.add_argument(
        "data",
        nargs="+",
        metavar="DIR[:SOURCE][=WEIGHT]",
        help="what to read. Without weights: as much of everything as there is",
    )
    parser.add_argument(
        "--output", type=local_path, metavar="FILE", help="write the lists to a JSON file instead"
    )


def _add_trace(commands: "argparse._SubParsersAction[Parser]") -> None:
    text = "show what a step trains on, or when a document is seen"
    parser = commands.add_parser("trace", help=text, description=text)
    parser.set_defaults(command=_trace)
    parser.add_argument(
        "run",
        nargs="?",
        type=local_path,
        metavar="RUN",
        help="the run's saved options; or give flags",
    )
    question = parser.add_mutually_exclusive_group(required=True)
    question.add_argument(
        "--step", type=count, metavar="N", help="which documents step N trains on"
    )
    question.add_argument(
        "--document", metavar="ID", help="when it is seen: SHARD:ROW, PATH:POSITION, id or url"
    )
    parser.add_argument(
        "--until",
        type=count,
        metavar="N",
        help="with --document: all steps before N. Default: the run's --steps, else one epoch",
    )
    add_run_flags(parser)


def _add_remove(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = _command(commands, "remove", "take documents out of training, whatever they are named")
    parser.set_defaults(command=_remove)
    parser.add_argument(
        "--documents",
        type=local_path,
        metavar="FILE",
        help="a file with a name on each line: SHARD:ROW, PATH:POSITION, id or url",
    )
    parser.add_argument(
        "--id",
        action="append",
        default=[],
        metavar="NAME",
        help="one such name; may be repeated",
    )
    parser.add_argument(
        "--url",
        action="append",
        default=[],
        metavar="PATTERN",
        help="whole urls; * stands for any characters, / included; may be repeated",
    )
    parser.add_argument("--reason", metavar="TEXT", help="kept in the manifest: name no person")
    parser.add_argument("--dry-run", action="store_true", help="only show what would go")
    parser.add_argument(
        "--missing-ok", action="store_true", help="go on if names stand for no document"
    )
    parser.add_argument("--report", type=local_path, metavar="FILE", help="write all of it as JSON")
    parser.add_argument(
        "--run",
        type=local_path,
        metavar="RUN",
        help="a run's saved options: show the steps that saw it",
    )
    parser.add_argument(
        "--until", type=count, metavar="N", help="with --run: all steps before N, as for trace"
    )


def _command(
    commands: "argparse._SubParsersAction[Parser]", name: str, text: str
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text)
    now = name in ("compact", "prune", "remove")
    names = "a dataset" if now else "a dataset; DIR@n: as it was at n"
    command.add_argument("dataset", metavar="DIR", help=names)
    return command


def _inspect(options: argparse.Namespace) -> int:
    dataset = Dataset.open(options.dataset)
    if options.doc is None and options.source is None:
        print_lines(show.overview(dataset))
    else:
        number = options.doc or 0
        print_lines(show.document(dataset, number, source=options.source, split=options.split))
    return OK


def _view(options: argparse.Namespace) -> int:
    view(options)
    return OK


def _stats(options: argparse.Namespace) -> int:
    print_lines(show.statistics(Dataset.open(options.dataset)))
    return OK


def _verify(options: argparse.Namespace) -> int:
    dataset = Dataset.open(options.dataset)
    entries = dict(dataset.manifest.files())
    share = place.placed_share(dataset.directory)
    needed = None if share is None else dict(place.needed_files(dataset.manifest, share))
    read = entries if needed is None else needed
    num_bytes = sum(entry.bytes for entry in read.values())
    start = time.perf_counter()
    problems = print_lines(verify(dataset, needed=needed))
    seconds = time.perf_counter() - start
    speed = f"{num_bytes / 1e6 / seconds:,.0f} MB/s"
    verdict = "1 problem" if problems == 1 else f"{problems} problems" if problems else "ok"
    whose = "" if share is None else f"; placed here: {share}, {len(entries)} files in the whole"
    print_line(f"{len(read)} files, {num_bytes:,} bytes, {speed}: {verdict}{whose}")
    return DAMAGED if problems else OK


def _prune(options: argparse.Namespace) -> int:
    directory = any_path(options.dataset)
    read_manifest(directory)  # refuses a folder without a dataset before anything is locked
    with locked(directory):
        _delete_leftovers(directory, days=options.days, dry_run=options.dry_run)
    return OK


def _delete_leftovers(directory: AnyPath, *, days: int, dry_run: bool = False) -> None:
    """Delete what no manifest has named for some days, with a line for each."""
    now, freed = time.time(), 0
    for leftover in prune.leftovers(directory, read_manifest(directory)):
        is_old = leftover.age(now) >= days * 86_400
        if is_old and not dry_run:
            prune.delete(leftover)
        freed += leftover.bytes if is_old else 0
        state = "" if is_old else f": stays, a manifest named it within {days} days (--days)"
        print_line(f"{leftover.bytes:>16,}  {leftover.path}{state}")
    print_line(f"{freed:>16,}  bytes {'would be freed' if dry_run else 'freed'}")


def _compact(options: argparse.Namespace) -> int:
    directory = any_path(options.dataset)
    read_manifest(directory)  # refuses a folder without a dataset before anything is locked
    with held(directory):
        if options.erase:
            return _erase(directory)
        dataset = Dataset.open(directory)
        members = dataset.manifest.generations
        if len(members) < compact.LEAST:
            print_line(f"{directory}: nothing to compact: it has {len(members)} generation")
            return OK
        made = _run_compaction(compact.Compaction(dataset))
    print_note(
        f"{directory}: {len(members)} generations are now {made.name}; readers of the old ones go "
        f"on until python -m shards prune {directory} deletes them"
    )
    return OK


def _erase(directory: AnyPath) -> int:
    """Compact a dataset without its removed documents, and delete every file that has them."""
    dataset = Dataset.open(directory)
    erasure = Erasure(dataset)
    if erasure.num_documents or erasure.num_returned:
        compaction = compact.Compaction(dataset, erasure=erasure)
        records = _write_parts(compaction)
        for line in erasure.clear_report():  # before the manifest, which then knows no removal
            print_line(line)
        made = compaction.commit(records)
        if number := erasure.num_documents:
            erased = "1 document" if number == 1 else f"{number:,} documents"
            print_line(f"{directory}: {erased} erased; all others are in {made.name}")
        else:
            print_line(
                f"{directory}: no document is removed; erased texts had come back to dropped/, "
                f"rows: {erasure.num_returned:,}; all else is in {made.name}"
            )
    else:
        for line in erasure.clear_report() if erasure.is_known else ():
            print_line(line)
        print_line(f"{directory}: no document is removed; files that no manifest names are deleted")
    _delete_leftovers(directory, days=0)
    return OK


def _run_compaction(compaction: compact.Compaction) -> Generation:
    """Write all parts and the manifest, and return the new generation."""
    return compaction.commit(_write_parts(compaction))


def _write_parts(compaction: compact.Compaction) -> dict[compact.Part, compact.PartRecord]:
    """Print a line for each part that is written, and return the records of all."""
    compaction.check_idle()
    compaction.check_room()
    print_line(f"{compaction.bytes:>16,}  bytes are checked first", flush=True)
    compaction.check()
    records = {}
    for number, part in enumerate(compaction.parts, 1):
        record = compaction.finished(part)
        if record is None:
            record = compaction.write(part)
            of = f"{number} of {len(compaction.parts)}"
            print_line(f"{record.bytes:>16,}  {of:>14}  {part}", flush=True)
        records[part] = record
    return records


def _place(options: argparse.Namespace) -> int:
    dataset = Dataset.open(options.dataset)
    check_scatters(streams_of(dataset), options.scatters)
    scatters = scatters_of_node(options.scatters, nodes=options.nodes, node=options.node)
    share = place.NodeShare(scatters=scatters, num_scatters=options.scatters)
    print_line(f"node {options.node} of {len(options.nodes)}: {share}")
    if options.list:
        files = place.needed_files(dataset.manifest, share)
        print_lines(f"{entry.bytes:>16,}  {path}" for path, entry in files)
        return OK
    if options.check:
        return _check_placed(Dataset(options.to or dataset.directory, dataset.manifest), share)
    if options.to is None:
        raise UserError("say where to: --to DISK, a folder on the node's own disk; or --list.")
    copied = kept = 0
    for file in place.place(dataset, share, to=options.to):
        if file.copied:
            print_line(f"{file.bytes:>16,}  {file.path}", flush=True)
            copied += file.bytes
        else:
            kept += file.bytes
    print_line(
        f"{copied:>16,}  bytes copied to {options.to}, {kept:,} were there; all checksums match"
    )
    return OK


def _check_placed(dataset: Dataset, share: place.NodeShare) -> int:
    problems = print_lines(place.check_placed(dataset, share))
    print_line(f"{dataset.directory}: {problems or 'no'} problems")
    return DAMAGED if problems else OK


def _export(options: argparse.Namespace) -> int:
    export(options)
    return OK


def _megatron(options: argparse.Namespace) -> int:
    found = blends(options.data)
    print_line(found.arguments() if options.output is None else found.save(options.output))
    tell(found.summary())
    return OK


def _trace(options: argparse.Namespace) -> int:
    run = run_of(options) if options.run is None else Run.load(options.run)
    tracer = trace.Tracer(run)
    if options.step is not None:
        print_lines(trace.step_lines(tracer, options.step))
    else:
        until = run.steps if options.until is None else options.until
        print_lines(trace.document_lines(tracer, options.document, until=until))
    return OK


def _remove(options: argparse.Namespace) -> int:
    if not options.dry_run and not (options.reason or "").strip():
        raise UserError("say why: --reason TEXT, which stays in the manifest; or give --dry-run.")
    if options.until is not None and options.run is None:
        raise UserError("--until N says how far a run is looked at: give --run RUN as well.")
    listed = [] if options.documents is None else read_names(options.documents)
    names = Names([*listed, *options.id], patterns=options.url)
    directory, number = parse_dataset(options.dataset)
    if number is not None:
        raise UserError(
            f"{options.dataset}: remove changes the dataset as it is now; leave @n out."
        )
    read_manifest(directory)  # refuses a folder without a dataset before anything is locked
    with nullcontext() if options.dry_run else held(directory):
        dataset = Dataset.open(directory)
        selection = Selection.of(dataset, names)
        if not options.missing_ok and not (options.dry_run and selection.parts):
            selection.check_complete()
        run = None if options.run is None else (options.run, options.until)
        told = takedown(dataset, selection, reason=options.reason or "", run=run)
        print_lines(takedown_lines(told, dry_run=options.dry_run))
        if not options.dry_run and selection.num_documents:
            changed = remove(directory, dataset.manifest, selection, reason=options.reason)
            told = replace(told, removed_in=changed.number)
    if options.report is not None:
        told.save(options.report)
    print_note(_outcome(told))
    return OK


def _outcome(told: Takedown) -> str:
    if told.removed_in is None:
        return "nothing was changed"
    name = told.dataset
    return (
        f"manifest {told.removed_in}: from here on these documents are padding. A run that follows "
        f"{name} takes it at its next checkpoint, others when they are resumed with --data "
        f"{name}@{told.removed_in}, copies when they are placed again. The bytes stay until python "
        f"-m shards compact {name} --erase"
    )


if __name__ == "__main__":
    sys.exit(main())
