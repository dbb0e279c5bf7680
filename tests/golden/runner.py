"""Runs a row in a folder of its own, and what it starts from before it."""

import fcntl
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests import job
from tests.golden.outcome import outcome_of
from tests.golden.row import Command, Row
from tests.ports import free_port

ROOT = Path(__file__).parents[2]


def outcome(name: str, rows: Mapping[str, Row], home: Path) -> dict:
    """What the row gives. HOME keeps finished rows, and may be shared between processes."""
    row = rows[name]
    home.mkdir(parents=True, exist_ok=True)
    with _alone(home / f"{name}.lock"):
        done = home / f"{name}.json"
        if not done.exists():
            found = _run(row, rows, home)
            done.write_text(json.dumps(found), "utf-8")
        return json.loads(done.read_text("utf-8"))


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(row: Row, rows: Mapping[str, Row], home: Path) -> dict:
    folder = home / row.name
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
    before: dict = {}
    if row.after:
        before = outcome(row.after, rows, home)
        shutil.copytree(home / row.after, folder, symlinks=True)
    else:
        folder.mkdir()
    for corpus in row.corpora:
        corpus(folder)
    ran = []
    for command in row.commands:
        whole = Command(words=command) if isinstance(command, str) else command
        ran.append({"command": whole.words, **_ran(whole, folder)})
    return _news(outcome_of(folder, ran, row.keeps, ROOT), before, row.after)


def _news(found: dict, before: dict, after: str) -> dict:
    """The outcome, without what is as it was in the row that this one began with."""
    for kind in ("datasets", "runs"):
        for name, held in found.get(kind, {}).items():
            if held == before.get(kind, {}).get(name):
                found[kind][name] = f"as in {after}"
    return found


def _ran(command: Command, folder: Path) -> dict:
    if command.files:
        command.files(folder)
    words = shlex.split(command.words)
    with tempfile.TemporaryDirectory() as scratch:
        outputs = [
            [Path(scratch) / f"{rank}.{kind}" for kind in ("out", "err")]
            for rank in range(command.ranks)
        ]
        wing = words[0].partition(".")[0]
        if command.ranks == 1 and wing in job.IMPORTED:
            forked = job.Job(words=words, folder=str(folder), outputs=[*map(str, outputs[0])])
            codes = [job.run(wing, forked)]
        else:
            codes = _codes(words, folder, outputs)
        printed = [
            path.read_text("utf-8", "replace").splitlines() for pair in outputs for path in pair
        ]
    if any(code != command.code for code in codes):
        said = "\n".join(line for lines in printed for line in lines[-30:])
        raise AssertionError(f"{command.words}\nended with {codes}, not {command.code}:\n{said}")
    lines = [line for lines in printed for line in lines] if command.prints else []
    return {"code": command.code, "printed": lines}


def _codes(words: list[str], folder: Path, outputs: Sequence[Sequence[Path]]) -> list[int]:
    """Return the exit codes of a script, or of the ranks of a run, each a Python of its own."""
    run = words if words[0].endswith(".py") else ["-m", *words]
    port = str(free_port())
    processes = [
        _start(run, folder, _environment(rank, len(outputs), port), *pair)
        for rank, pair in enumerate(outputs)
    ]
    return [_wait(process) for process in processes]


def _start(
    run: list[str], folder: Path, environment: dict, out: Path, err: Path
) -> subprocess.Popen:
    with out.open("w") as out_file, err.open("w") as err_file:
        return subprocess.Popen(
            [sys.executable, *run],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out_file,
            stderr=err_file,
        )


def _wait(process: subprocess.Popen) -> int:
    try:
        return process.wait(job.LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _environment(rank: int, ranks: int, port: str) -> dict[str, str]:
    if ranks == 1:
        return job.ENVIRONMENT
    return {
        **job.ENVIRONMENT,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": port,
    }
