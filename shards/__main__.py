"""Looks at datasets and looks after them: `python -m shards inspect|verify|stats|prune DIR`."""

import argparse
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from shards import prune, show
from shards.errors import UserError
from shards.manifest import TRAIN, VALIDATION, load
from shards.reader import Dataset
from shards.storage import locked
from shards.verify import verify

OK = 0
DAMAGED = 1
REFUSED = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 well, 1 damage found, 2 refused."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.command(options)
        sys.stdout.flush()
    except UserError as error:
        print(f"shards: {error}", file=sys.stderr)
        return REFUSED
    except BrokenPipeError:
        # The reader has seen enough (| head); leave nothing for the interpreter to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m shards", description="Look at datasets.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    inspect = _command(commands, "inspect", "show a dataset in one screen, or one of its documents")
    inspect.set_defaults(command=_inspect)
    inspect.add_argument("--doc", type=int, metavar="N", help="show document N, counted from 0")
    inspect.add_argument("--source", help="one of this source (--doc 0 unless given)")
    inspect.add_argument("--split", choices=(TRAIN, VALIDATION), default=TRAIN)
    check = _command(commands, "verify", "read every file and check it against the manifest")
    check.set_defaults(command=_verify)
    stats = _command(commands, "stats", "figures of every source, and the accounting")
    stats.set_defaults(command=_stats)
    clean = _command(commands, "prune", "delete what the manifest does not name")
    clean.set_defaults(command=_prune)
    clean.add_argument("--dry-run", action="store_true", help="list it only")
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, text: str
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text)
    names = "a dataset" if name == "prune" else "a dataset; DIR@n: as it was at n"
    command.add_argument("dataset", metavar="DIR", help=names)
    return command


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def _inspect(options: argparse.Namespace) -> int:
    dataset = Dataset.open(options.dataset)
    if options.doc is None and options.source is None:
        _print(show.overview(dataset))
    else:
        number = options.doc or 0
        _print(show.document(dataset, number, source=options.source, split=options.split))
    return OK


def _stats(options: argparse.Namespace) -> int:
    _print(show.statistics(Dataset.open(options.dataset)))
    return OK


def _verify(options: argparse.Namespace) -> int:
    dataset = Dataset.open(options.dataset)
    entries = [entry for _, entry in dataset.manifest.files()]
    num_bytes = sum(entry.bytes for entry in entries)
    start = time.perf_counter()
    problems = 0
    for problem in verify(dataset):
        print(problem)
        problems += 1
    seconds = time.perf_counter() - start
    speed = f"{num_bytes / 1e6 / seconds:,.0f} MB/s"
    verdict = f"{problems} problem{'s' * (problems > 1)}" if problems else "ok"
    print(f"{len(entries)} files, {num_bytes:,} bytes, {speed}: {verdict}")
    return DAMAGED if problems else OK


def _prune(options: argparse.Namespace) -> int:
    directory = Path(options.dataset)
    load(directory)  # without a dataset nothing is locked, made or deleted
    with locked(directory):
        found = list(prune.leftovers(directory, load(directory)))
        for leftover in found:
            if not options.dry_run:
                prune.delete(leftover)
            print(f"{leftover.bytes:>16,}  {leftover.path}")
    state = "would be freed" if options.dry_run else "freed"
    print(f"{sum(leftover.bytes for leftover in found):>16,}  bytes {state}")
    return OK


if __name__ == "__main__":
    sys.exit(main())
