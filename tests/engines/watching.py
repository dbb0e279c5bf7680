"""Watches on engines: files that arrive, kills, and the same generations made by --append."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from shards.manifest import NAME, Manifest, read_manifest
from tests.engines.inputs import text
from tests.engines.processes import guarded, started, wait_until
from tests.engines.runs import COMMON, ROOT, Run
from tests.pipelines.runs import content, write_wudao

MODULE = "pipelines.wudao"
SIZES = ("--shards", "2", "--validation", "0")


def arrive(folder: Path, number: int, *, documents: int = 12) -> Path:
    """A file appears, as a download does: written under another name, then renamed."""
    first = number * documents
    records = [
        {
            "uniqueKey": f"{index:032x}",
            "dataType": "百科",
            "title": "山水田木",
            "content": text(index, chinese=True),
        }
        for index in range(first, first + documents)
    ]
    path = folder / f"part-{number:06}.json"
    write_wudao(path.with_name(f"{path.name}.tmp"), records).rename(path)
    return path


@contextmanager
def arriving(
    folder: Path, *, seconds: float, arrive: Callable[[Path, int], object] = arrive
) -> Iterator[list[int]]:
    """Let files arrive while the block runs, one every so many seconds; yields their numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers: list[int] = []
    stop = threading.Event()

    def feed() -> None:
        while not stop.wait(seconds):
            arrive(folder, len(numbers))
            numbers.append(len(numbers))

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    try:
        yield numbers
    finally:
        stop.set()
        thread.join()


def command(inbox: Path, output: Path, flags: Sequence[object]) -> list[object]:
    """The command of a corpus over the files that arrive."""
    return [
        *(sys.executable, "-m", MODULE, *COMMON, *SIZES),
        *("--input", inbox, "--output", output, *flags),
    ]


@contextmanager
def watching(inbox: Path, output: Path, flags: Sequence[object], *, log: str = "") -> Iterator[Run]:
    """Yield a watch."""
    inbox.mkdir(parents=True, exist_ok=True)
    path = output.with_name(f"{output.name}{log}.log")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = command(inbox, output, ["--watch", *flags])
    with started(words, log=path, env=env, cwd=ROOT) as process:
        yield Run(process, output, path)


def generations(output: Path) -> int:
    """How many generations the dataset has by now."""
    return len(read_manifest(output).generations) if (output / NAME).exists() else 0


def committed(output: Path) -> int:
    """How many files are in the dataset by now."""
    if not (output / NAME).exists():
        return 0
    return sum(map(len, inputs_of(read_manifest(output))))


def wait_for(run: Run, what: Callable[[], bool], *, seconds: float = 120) -> None:
    """Wait for something while a watch runs."""
    wait_until(what, run.process, log=run.log, seconds=seconds)


def says(run: Run, words: str) -> Callable[[], bool]:
    """Whether the watch has said something."""
    return lambda: words in run.log.read_text(errors="replace")


def end(run: Run, *, number: int, seconds: float = 120) -> str:
    """Tell a watch by a signal to end, wait until it has, and return what it said."""
    guarded(run.process).send_signal(number)
    return run.finish(seconds=seconds)


def map_workers(run: Run) -> list[psutil.Process]:
    """The children of the driver that map, where Prism runs the stream."""
    driver = guarded(run.process)
    return [
        child
        for child in driver.children(recursive=True)
        if "forkserver" in " ".join(child.cmdline()) and child.ppid() != driver.pid
    ]


def inputs_of(manifest: Manifest) -> list[list[str]]:
    """The files of each generation."""
    return [[entry.path for entry in generation.inputs] for generation in manifest.generations]


def appended(inbox: Path, output: Path, manifest: Manifest, flags: Sequence[object] = ()) -> float:
    """Make the generations of a watch by --append, one after the other; returns the seconds."""
    copy = output.with_name(f"{output.name}-in")
    log = output.with_suffix(".append.log")
    seconds = 0.0
    for names in inputs_of(manifest):
        for name in names:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            os.link(inbox / name, copy / name)
        words = command(copy, output, ["--append", *flags])
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        began = time.monotonic()
        with started(words, log=log, env=env, cwd=ROOT) as process:
            code = process.wait(timeout=3600)
        seconds += time.monotonic() - began
        assert code == 0, log.read_text(errors="replace")
    return seconds


def check_once(run: Run, inbox: Path) -> Manifest:
    """Check that every file is in exactly one generation, and return the manifest."""
    manifest = read_manifest(run.output)
    taken = [name for names in inputs_of(manifest) for name in names]
    assert sorted(taken) == sorted(path.name for path in inbox.glob("*.json"))
    assert not (run.output / "ledger.json").exists()
    return manifest


def check_as_appended(run: Run, inbox: Path, folder: Path) -> Manifest:
    """Check that a watch made what --append makes of the same generations, byte for byte."""
    manifest = check_once(run, inbox)
    appended(inbox, folder / "appended", manifest)
    assert content(run.output) == content(folder / "appended")
    assert manifest.identity == read_manifest(folder / "appended").identity
    return manifest
