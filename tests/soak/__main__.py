"""Random cases against an oracle: `make soak MINUTES=30`, `python -m tests.soak --minutes 30`.

The seed and its number alone decide a case: corpora in all formats with invalid records, options,
engines, kills, damage, full disks, and further commands. The datasets are compared with an oracle
in plain Python, which was written from docs/, and with an uninterrupted run. A failing case keeps
its folder, and the soak prints the command that repeats it.
"""

import argparse
import gc
import importlib
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests import forks
from tests.soak.case import Case, NoDocuments
from tests.soak.kinds import KINDS
from tests.soak.mounts import MountError, enter_namespace
from tests.soak.records import CORPORA
from tests.soak.scenario import case_random

OK, FAILED, EMPTY, SKIPPED = "ok", "failed", "empty", "skipped"
_CODES = {0: OK, 3: EMPTY, 4: SKIPPED}
_MEMORY = Path("/dev/shm")
"""The folder for cases, if it exists; on a disk, cases spend nearly all their time in fsync."""
PACKAGES = ("pipelines", "shards")
"""The packages whose commands the cases run."""
MAX_SECONDS = 400.0
"""The time limit of a case, in seconds, on a busy machine."""


@dataclass
class Results:
    """The results of the cases so far."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The number of cases, by kind and outcome."""
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    failures: list[tuple[int, str, Path]] = field(default_factory=list)

    def total(self, outcome: str) -> int:
        return sum(number for (_, how), number in self.outcomes.items() if how == outcome)

    def table(self) -> str:
        """Return a table with one row per kind of case."""
        names = (OK, EMPTY, SKIPPED, FAILED)
        head = "".join(f"{name:>9}" for name in names)
        lines = [f"{'kind':14}{head}{'s/case':>10}  kind of case"]
        for kind, entry in KINDS.items():
            counts = [self.outcomes[kind, name] for name in names]
            if sum(counts):
                mean = self.seconds[kind] / sum(counts)
                figures = "".join(f"{count:9,}" for count in counts)
                lines.append(f"{kind:14}{figures}{mean:10.1f}  {entry.about}")
        figures = "".join(f"{self.total(name):9,}" for name in names)
        return "\n".join([*lines, f"{'all':14}{figures}"])


@dataclass
class RunningCase:
    """A case that runs in its own process."""

    number: int
    kind: str
    folder: Path
    began: float = field(default_factory=time.monotonic)
    killed: bool = False


def main() -> int:
    """Run cases until the time is up; return 1 if a case failed."""
    args = _arguments()
    _import_everything()
    keep = args.keep.absolute()
    keep.mkdir(parents=True, exist_ok=True)
    results, running = Results(), dict[int, RunningCase]()
    end = time.monotonic() + args.minutes * 60
    show = _Progress(end)
    last = 0
    for number in _numbers(args, end, results):
        while len(running) >= args.jobs:
            _reap(running, args.seed, keep=keep, results=results)
            show(results)
        case = RunningCase(number, kind_of(args.seed, number), _new_folder(number, keep))
        running[_start(case, args.seed)] = case
        last = number
    while running:
        _reap(running, args.seed, keep=keep, results=results)
    print(f"\nseed {args.seed}, cases up to {last:,}\n{results.table()}")
    for failed, kind, folder in results.failures:
        print(f"failed: {kind}, kept in {folder}; again: {_again(args.seed, failed)}")
    return 1 if results.failures else 0


def _numbers(args: argparse.Namespace, end: float, results: Results) -> Iterator[int]:
    """Yield case numbers until the time is up and at least one case had documents."""
    if args.case is not None:
        yield args.case
        return
    for number in itertools.count():
        if args.only and kind_of(args.seed, number) not in args.only:
            continue
        if time.monotonic() > end and sum(results.outcomes.values()) > results.total(EMPTY):
            return
        yield number


def kind_of(seed: int, number: int) -> str:
    """Return the kind of a case."""
    rng = random.Random(f"{seed}:{number}:kind")
    return rng.choices([*KINDS], weights=[kind.weight for kind in KINDS.values()])[0]


def _again(seed: int, number: int) -> str:
    return f"python -m tests.soak --seed {seed} --case {number}"


@dataclass
class _Progress:
    """Prints a line of progress per minute."""

    end: float
    shown: float = 0.0

    def __call__(self, results: Results) -> None:
        now = time.monotonic()
        if now >= self.shown + 60:
            self.shown = now
            cases, left = sum(results.outcomes.values()), max(0.0, self.end - now) / 60
            line = f"{cases:,} cases, {results.total(FAILED)} failed, {left:.1f} minutes left"
            print(line, file=sys.stderr, flush=True)


def _new_folder(number: int, keep: Path) -> Path:
    parent = _MEMORY if _MEMORY.is_dir() else keep
    return Path(tempfile.mkdtemp(prefix=f"soak-{number}-", dir=parent))


def _start(case: RunningCase, seed: int) -> int:
    """Start a case in its own process; return the process ID."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        _run(seed, case.number, case.kind, case.folder)
    return pid


def _reap(running: dict[int, RunningCase], seed: int, *, keep: Path, results: Results) -> None:
    """Count the cases that have ended; kill those that take too long, and their commands."""
    ended = False
    for pid, case in [*running.items()]:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            del running[pid]
            _count(case, os.waitstatus_to_exitcode(status), seed, keep=keep, results=results)
            ended = True
        elif time.monotonic() > case.began + MAX_SECONDS and not case.killed:
            case.killed = True
            for process in [*psutil.Process(pid).children(recursive=True), psutil.Process(pid)]:
                process.kill()
    if not ended:
        time.sleep(0.005)


def _count(case: RunningCase, code: int, seed: int, *, keep: Path, results: Results) -> None:
    """Count a case by its outcome; keep its folder if it failed."""
    outcome = _CODES.get(code, FAILED)
    results.outcomes[case.kind, outcome] += 1
    results.seconds[case.kind] += time.monotonic() - case.began
    if outcome != FAILED:
        shutil.rmtree(case.folder, ignore_errors=True)
        return
    folder = case.folder
    if folder.parent != keep:
        # Some inputs are pipes, which shutil cannot copy.
        subprocess.run(["cp", "-a", folder, keep], check=False)
        shutil.rmtree(folder, ignore_errors=True)
        folder = keep / folder.name
    results.failures.append((case.number, case.kind, folder))
    report = folder / "failure.txt"
    told = report.read_text() if report.exists() else f"the case ended with code {code}"
    print(f"\nFAILED: {case.kind}, seed {seed}, case {case.number}: {told[-2500:]}", flush=True)


def _run(seed: int, number: int, kind: str, folder: Path) -> None:
    """Run a case in this process, then end the process with the exit code of the outcome."""
    os.setsid()
    forks.die_with_parent()
    case = Case(case_random(seed, number), folder)
    code = 1
    try:
        if KINDS[kind].own_namespace:
            enter_namespace()
        forks.fork_servers(*PACKAGES)
        KINDS[kind].run(case)
        code = 0
    except NoDocuments:
        code = 3
    except MountError:
        code = 4
    except BaseException:  # noqa: BLE001 - any error is a failure
        notes = "\n".join(case.notes)
        (folder / "failure.txt").write_text(f"{notes}\n{traceback.format_exc()}", "utf-8",
                                            "backslashreplace")  # fmt: skip
        _keep_mounted(folder)
    finally:
        os._exit(code)


def _keep_mounted(folder: Path) -> None:
    """Copy the files of a mounted disk, which disappears with this process."""
    disk = folder / "disk"
    if disk.is_dir() and os.path.ismount(disk):
        shutil.copytree(disk / "out", folder / "disk-out", ignore_dangling_symlinks=True)


def _import_everything() -> None:
    """Import the modules of all commands once, before any fork."""
    for package in PACKAGES:
        forks.import_package(package)
    for name in (*CORPORA, "rethreshold", "report.command"):
        importlib.import_module(f"pipelines.{name}")
    gc.collect()
    gc.freeze()  # so that the garbage collector does not write to pages that forks share


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="minutes to run. Default: 30")
    parser.add_argument("--seed", type=int, default=0, help="seed of the cases. Default: 0")
    parser.add_argument(
        "--only", action="append", choices=[*KINDS], help="only cases of this kind; may be repeated"
    )
    parser.add_argument("--case", type=int, metavar="N", help="run only case N")
    parser.add_argument(
        "--jobs",
        type=int,
        default=len(os.sched_getaffinity(0)),
        help="cases that run at the same time. Default: one per core",
    )
    parser.add_argument(
        "--keep",
        type=Path,
        default=Path("build/soak"),
        metavar="DIR",
        help="folder for failing cases. Default: build/soak",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
