"""Runs a row in its own folder, after the row that it starts from."""

import fcntl
import json
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests import forks
from tests.golden.outcome import outcome_of
from tests.golden.row import Command, Row
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
_PACKAGES = {
    "apache_beam.yaml.main": "pipelines",
    "api.py": "trainer",
    "blanks.py": "trainer",
    "draw.py": "trainer",
    "parts.py": "trainer",
    "tests.golden.python_calls": "pipelines",
    "tests.golden.beam_transforms": "pipelines",
}
"""The package of tests/forks.py that imports the libraries of each script or module. Other
programs, unless they are commands, start a new Python."""


def outcome(name: str, rows: Mapping[str, Row], home: Path) -> dict:
    """Return the outcome of a row; `home`, which processes may share, keeps finished rows."""
    row = rows[name]
    home.mkdir(parents=True, exist_ok=True)
    with _locked(home / f"{name}.lock"):
        done = home / f"{name}.json"
        if not done.exists():
            found = _run(row, rows, home)
            done.write_text(json.dumps(found), "utf-8")
        return json.loads(done.read_text("utf-8"))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(row: Row, rows: Mapping[str, Row], home: Path) -> dict:
    folder = home / row.name
    shutil.rmtree(folder, ignore_errors=True)  # left by a run that was killed
    before: dict = {}
    if row.starts_from:
        before = outcome(row.starts_from, rows, home)
        shutil.copytree(home / row.starts_from, folder, symlinks=True)
    else:
        folder.mkdir()
    for write in row.setup:
        write(folder)
    ran = []
    for command in row.commands:
        whole = Command(words=command) if isinstance(command, str) else command
        ran.append({"command": whole.words, **_ran(whole, folder)})
    return _without_unchanged(
        outcome_of(folder, ran, row.pinned_files, ROOT), before, row.starts_from
    )


def _without_unchanged(found: dict, before: dict, after: str) -> dict:
    """Replace each dataset and run that equals the starting row's by a reference to that row."""
    for kind in ("datasets", "runs"):
        for name, held in found.get(kind, {}).items():
            if held == before.get(kind, {}).get(name):
                found[kind][name] = f"as in {after}"
    return found


def _ran(command: Command, folder: Path) -> dict:
    if command.prepare:
        command.prepare(folder)
    words = shlex.split(command.words)
    package = _PACKAGES.get(words[0], words[0].partition(".")[0])
    is_known = package in forks.PRELOADED
    ranks, port = command.ranks, free_port() if command.ranks > 1 else 0
    with tempfile.TemporaryDirectory() as scratch:
        outputs = [[f"{scratch}/{rank}.{kind}" for kind in ("out", "err")] for rank in range(ranks)]
        started = [
            forks.start(
                package if is_known else "shards",
                forks.Job(
                    words=words,
                    folder=str(folder),
                    outputs=pair,
                    env=forks.rank_environment(rank, ranks, port=port, local=rank) if port else {},
                    new_process=not is_known,
                ),
            )
            for rank, pair in enumerate(outputs)
        ]
        codes = [forks.wait_or_kill(each) for each in started]
        printed = [
            Path(path).read_text("utf-8", "replace").splitlines()
            for pair in outputs
            for path in pair
        ]
    if any(code != command.code for code in codes):
        output = "\n".join(line for lines in printed for line in lines[-30:])
        raise AssertionError(f"{command.words}\nended with {codes}, not {command.code}:\n{output}")
    lines = [line for lines in printed for line in lines] if command.pins_output else []
    return {"code": command.code, "printed": lines}
