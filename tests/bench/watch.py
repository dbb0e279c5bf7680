"""A watch of some minutes: files arrive all the time, a worker and the driver are killed.

The result is compared, file by file, with --append of the same generations, and the rate with that
of one run over all of the files.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from shards.manifest import read_manifest, sum_shards
from tests.bench import inputs
from tests.bench.table import render
from tests.engines.processes import guarded, started, wait_until
from tests.pipelines.runs import content

EVERY = 60
"""Seconds from one generation to the next."""
SETTLE = 2
"""Seconds after which a file has settled."""
KILOBYTES = 500
"""Of a file; one arrives each second."""

_MODULE = "pipelines.wudao"
_ENV = {**os.environ, "PYTHONPATH": str(inputs.ROOT)}


def measure(minutes: float) -> str:
    """Return the table of a watch that is killed twice."""
    files = max(10, round(60 * minutes))
    source = inputs.many(files, megabytes=-(-files * KILOBYTES // 1000))
    with _scratch() as folder:
        watch = _watched(source, folder, seconds=60 * minutes)
        return _table(folder / "in", folder / "out", folder, watch)


@contextmanager
def _scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="watch-", dir=_folder()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _folder() -> Path:
    inputs.FOLDER.mkdir(parents=True, exist_ok=True)
    return inputs.FOLDER


def _watched(source: Path, folder: Path, *, seconds: float) -> "_Watch":
    """Return a watch that has ended, after all files have arrived."""
    inbox, output = folder / "in", folder / "out"
    inbox.mkdir()
    with ExitStack() as stack:
        watch = _Watch(inbox, output)
        stack.callback(watch.close)
        watch.start()
        with _arriving(source, inbox, seconds=seconds) as arrived:
            began = time.monotonic()
            _wait(watch, lambda: time.monotonic() - began > seconds / 3)
            _wait(watch, watch.kill_worker)
            _wait(watch, lambda: time.monotonic() - began > 2 * seconds / 3)
            watch.kill_driver()
            _wait(watch, lambda: len(arrived) == len([*source.iterdir()]))
        ended = time.monotonic()
        _wait(watch, lambda: time.monotonic() - ended > 2 * SETTLE)
        watch.end()
    return watch


@contextmanager
def _arriving(source: Path, inbox: Path, *, seconds: float) -> Iterator[list[str]]:
    """Copy files into the folder that is watched, evenly over so many seconds."""
    names = sorted(path.name for path in source.iterdir())
    arrived: list[str] = []
    stop = threading.Event()

    def feed() -> None:
        began = time.monotonic()
        for number, name in enumerate(names):
            if stop.wait(max(0.0, began + number * seconds / len(names) - time.monotonic())):
                return
            shutil.copyfile(source / name, inbox / f"{name}.tmp")
            (inbox / f"{name}.tmp").rename(inbox / name)
            arrived.append(name)

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    try:
        yield arrived
    finally:
        stop.set()
        thread.join()


def _generations(output: Path) -> list[list[str]]:
    """Return the files of each generation."""
    made = read_manifest(output).generations
    return [[entry.path for entry in generation.inputs] for generation in made]


def _wait(watch: "_Watch", what: Callable[[], bool], *, most: float = 7200) -> None:
    """Wait while the watch runs, measuring its memory."""
    end = time.monotonic() + most
    while not what():
        if time.monotonic() > end or watch.process is None or watch.process.poll() is not None:
            raise RuntimeError(f"the watch ended: {watch.said()[-4000:]}")
        watch.measure()
        time.sleep(1)


@dataclass
class _Watch:
    """The command, its kills, and what it took."""

    inbox: Path
    output: Path
    process: Any = None
    kills: list[str] = field(default_factory=list)
    driver_megabytes: list[float] = field(default_factory=list)
    worker_megabytes: list[float] = field(default_factory=list)
    """Of all other processes together."""
    _stack: ExitStack = field(default_factory=ExitStack)
    _logs: list[Path] = field(default_factory=list)

    def start(self) -> None:
        """Start the command, or start it again."""
        log = self.output.with_name(f"watch-{len(self._logs)}.log")
        self._logs.append(log)
        self.process = self._stack.enter_context(
            started(
                [
                    *_command(self.inbox, self.output),
                    *("--watch", "--every", f"{EVERY}s", "--settle", f"{SETTLE}s"),
                ],
                log=log,
                env=_ENV,
                cwd=inputs.ROOT,
            )
        )
        wait_until(lambda: "watching " in log.read_text(), self.process, log=log, seconds=300)

    def kill_worker(self) -> bool:
        """Kill a worker, if one is at work; return whether one was."""
        for server in guarded(self.process).children():
            for worker in server.children():
                worker.kill()
                self.kills.append("worker")
                return True
        return False

    def kill_driver(self) -> None:
        """Kill the driver and start it again."""
        guarded(self.process).kill()
        self.process.wait(timeout=60)
        self.kills.append("driver")
        self.start()

    def end(self) -> None:
        """Tell it to end, and wait until it has."""
        guarded(self.process).terminate()
        code = self.process.wait(timeout=1800)
        if code:
            raise RuntimeError(self.said()[-4000:])

    def close(self) -> None:
        """End what is left of it."""
        self._stack.close()

    def said(self) -> str:
        """Return all that it has written."""
        return "".join(log.read_text(errors="replace") for log in self._logs)

    def measure(self) -> None:
        """Note the memory of the driver, and of the others."""
        try:
            driver = guarded(self.process)
            others = driver.children(recursive=True)
            self.driver_megabytes.append(driver.memory_info().rss / 1e6)
            self.worker_megabytes.append(sum(p.memory_info().rss for p in others) / 1e6)
        except (psutil.Error, ValueError):
            return

    def memory(self) -> list[tuple[str, str]]:
        """Return the rows on memory."""
        idle = statistics.median(self.worker_megabytes)
        return [
            ("driver, resident MB at the start, middle, end", _course(self.driver_megabytes)),
            (
                "other processes, resident MB, median and most",
                f"{idle:.0f}, {max(self.worker_megabytes):.0f}",
            ),
        ]


def _command(inbox: Path, output: Path) -> list[object]:
    return [
        *(sys.executable, "-m", _MODULE, "--input", inbox, "--output", output),
        *("--tokenizer", inputs.tokenizer(), "--dedup", "minhash", "--max-reject-rate", "1"),
    ]


def _table(inbox: Path, output: Path, folder: Path, watch: _Watch) -> str:
    manifest = read_manifest(output)
    taken = [name for names in _generations(output) for name in names]
    once = sorted(taken) == sorted(path.name for path in inbox.iterdir())
    appended = folder / "appended"
    append_seconds = _append(inbox, appended, _generations(output))
    same = content(output) == content(appended)
    batch_seconds = _timed([*_command(inbox, folder / "batch")])
    batch = sum_shards(read_manifest(folder / "batch").shards())
    grown = sum_shards(manifest.shards())
    report = json.loads((output / "report.json").read_bytes())["generations"]
    lags = [generation["lag"] for generation in report if "lag" in generation]
    megabytes = sum(path.stat().st_size for path in inbox.iterdir()) / 1e6
    busy = sum(generation["seconds"] for generation in report)
    rows = [
        ("killed", ", ".join(watch.kills)),
        ("files, each in exactly one generation", f"{len(taken):,}, {'yes' if once else 'NO'}"),
        ("megabytes", f"{megabytes:,.0f}"),
        ("generations", f"{len(manifest.generations)}"),
        ("documents, tokens", f"{grown.documents:,}, {grown.tokens:,}"),
        ("lag, median of medians", f"{statistics.median(lag['median'] for lag in lags):.0f} s"),
        ("lag, worst", f"{max(lag['worst'] for lag in lags):.0f} s"),
        ("generations are being made", f"{busy:.0f} s"),
        ("tokens/s while files arrived", f"{_arrival_rate(inbox, grown.tokens):,.0f}"),
        ("tokens/s, one run over all", f"{batch.tokens / batch_seconds:,.0f}"),
        ("tokens/s, --append one after the other", f"{grown.tokens / append_seconds:,.0f}"),
        *watch.memory(),
        ("identity", manifest.identity[:16]),
        ("all files as by --append (sha256)", "yes" if same else "NO"),
    ]
    return render(("", ""), rows)


def _arrival_rate(inbox: Path, tokens: int) -> float:
    times = [path.stat().st_mtime for path in inbox.iterdir()]
    return tokens / max(1.0, max(times) - min(times))


def _course(megabytes: Sequence[float]) -> str:
    if not megabytes:
        return "-"
    tenth = max(1, len(megabytes) // 10)
    middle = len(megabytes) // 2
    parts = megabytes[tenth : 2 * tenth], megabytes[middle : middle + tenth], megabytes[-tenth:]
    return ", ".join(f"{statistics.median(part or megabytes):.0f}" for part in parts)


def _append(inbox: Path, output: Path, generations: Sequence[Sequence[str]]) -> float:
    """Make the same generations by --append, and return the seconds that it took."""
    copy = output.with_name("appended-in")
    copy.mkdir()
    seconds = 0.0
    for names in generations:
        for name in names:
            os.link(inbox / name, copy / name)
        seconds += _timed([*_command(copy, output), "--append"])
    return seconds


def _timed(words: Sequence[object]) -> float:
    began = time.monotonic()
    done = subprocess.run(
        [*map(str, words)], env=_ENV, cwd=inputs.ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-4000:])
    return time.monotonic() - began
