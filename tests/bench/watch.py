"""A watch of some minutes on an engine: files arrive all the time, and two processes are killed.

On Prism the engine and the driver are killed, on a Flink session cluster (of the jars for the
tests) a TaskManager and the JobManager. The result is compared, file by file, with --append of the
same generations, and the rate with that of one run over all of the files.
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

from pipelines.map.notes import file_key
from shards.manifest import Manifest, read_manifest, sum_shards
from tests.bench import inputs
from tests.bench.table import render
from tests.engines import flink
from tests.engines.processes import guarded, started, wait_until
from tests.engines.watching import generations, inputs_of
from tests.pipelines.runs import content

EVERY = 60
"""Seconds from one generation to the next."""
KILOBYTES = 500
"""Of a file; one arrives each second."""
SMALL_FILES = 10_000
PRISM = inputs.ROOT / ".engines" / "bin" / "prism"

_MODULE = "pipelines.wudao"
_ENV = {**os.environ, "PYTHONPATH": str(inputs.ROOT)}


def measure(engine: str, minutes: float) -> str:
    """Return the table of a watch on `prism` or `flink`."""
    files = max(10, round(60 * minutes))
    source = inputs.many(files, megabytes=-(-files * KILOBYTES // 1000))
    with _scratch() as folder:
        watch = _watched(engine, source, folder, seconds=60 * minutes, kills=True)
        return _table(folder / "in", folder / "out", folder, watch)


def measure_files(minutes: float) -> str:
    """Return the table of memory while SMALL_FILES small files arrive, on Prism."""
    source = inputs.many(SMALL_FILES, megabytes=SMALL_FILES * 3 // 1000)
    with _scratch() as folder:
        watch = _watched("prism", source, folder, seconds=60 * minutes, kills=False)
        taken = sum(map(len, inputs_of(read_manifest(folder / "out"))))
        rows = [
            ("files in the dataset", f"{taken:,} of {SMALL_FILES:,}"),
            ("generations", f"{generations(folder / 'out')}"),
            *watch.memory(),
        ]
        return render(("", ""), rows)


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


def _watched(engine: str, source: Path, folder: Path, *, seconds: float, kills: bool) -> "_Watch":
    """Return a watch that has ended, after all files have arrived."""
    inbox, output = folder / "in", folder / "out"
    inbox.mkdir()
    with ExitStack() as stack:
        cluster = (
            stack.enter_context(flink.session_cluster(folder / "flink"))
            if engine == "flink"
            else None
        )
        watch = _Watch(inbox, output, cluster)
        stack.callback(watch.close)
        watch.start()
        with _arriving(source, inbox, seconds=seconds) as arrived:
            began = time.monotonic()
            _wait(watch, lambda: time.monotonic() - began > seconds / 3)
            if kills:
                watch.kill_first()
            _wait(watch, lambda: time.monotonic() - began > 2 * seconds / 3)
            if kills:
                watch.kill_second()
            _wait(watch, lambda: len(arrived) == len([*source.iterdir()]))
        # What has arrived last is looked at once more, and settles.
        _wait(watch, lambda: _taken(output) >= len(arrived), most=600)
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


def _taken(output: Path) -> int:
    """Return how many files are in the dataset or noted; for a moment a file is both."""
    notes = (output / ".work" / "watch").glob("*.taken.json")
    keys = {path.name.partition(".")[0] for path in notes}
    if generations(output):
        for names in inputs_of(read_manifest(output)):
            keys |= {file_key("wudao", name) for name in names}
    return len(keys)


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
    cluster: flink.Cluster | None
    process: Any = None
    kills: list[str] = field(default_factory=list)
    driver_megabytes: list[float] = field(default_factory=list)
    engine_megabytes: list[float] = field(default_factory=list)
    _stack: ExitStack = field(default_factory=ExitStack)
    _logs: list[Path] = field(default_factory=list)

    def start(self) -> None:
        """Start the command, or start it again."""
        if self.cluster is None:
            engine: list[object] = ["--prism_location", PRISM]
        else:
            engine = [*self.cluster.flags, "--", "--checkpointing_interval=10000"]
        words = _command(self.inbox, self.output)
        log = self.output.with_name(f"watch-{len(self._logs)}.log")
        self._logs.append(log)
        self.process = self._stack.enter_context(
            started(
                [*words, "--watch", "--every", f"{EVERY}s", "--settle", "2s", *engine],
                log=log,
                env=_ENV,
                cwd=inputs.ROOT,
            )
        )
        wait_until(lambda: " runs (" in log.read_text(), self.process, log=log, seconds=300)

    def kill_first(self) -> None:
        """Kill Prism, or the TaskManager that maps."""
        if self.cluster is None:
            prism = next(p for p in self._below() if p.name() == "prism")
            prism.kill()
            self.kills.append("Prism")
            return
        wait_until(self._carrier_is_there, self.process, log=self._logs[-1], seconds=300)
        manager = self.cluster.carrier("Map")
        assert manager is not None
        manager.kill()
        self.kills.append("TaskManager")

    def kill_second(self) -> None:
        """Kill the driver and start it again, or the JobManager."""
        if self.cluster is None:
            guarded(self.process).kill()
            self.process.wait(timeout=60)
            self.kills.append("driver")
            self.start()
            return
        self.cluster.replace_job_manager()
        self.kills.append("JobManager")

    def _carrier_is_there(self) -> bool:
        assert self.cluster is not None
        return self.cluster.carrier("Map") is not None

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
        """Note the memory of the driver, and of Prism."""
        try:
            driver = guarded(self.process)
            self.driver_megabytes.append(driver.memory_info().rss / 1e6)
            prisms = [p.memory_info().rss / 1e6 for p in self._below() if p.name() == "prism"]
            self.engine_megabytes += prisms
        except (psutil.Error, ValueError):
            return

    def memory(self) -> list[tuple[str, str]]:
        """Return the rows on memory."""
        return [
            ("driver, resident MB at the start, middle, end", _course(self.driver_megabytes)),
            ("Prism, resident MB at the start, middle, end", _course(self.engine_megabytes)),
        ]

    def _below(self) -> Sequence[psutil.Process]:
        return guarded(self.process).children(recursive=True)


def _command(inbox: Path, output: Path) -> list[object]:
    return [
        *(sys.executable, "-m", _MODULE, "--input", inbox, "--output", output),
        *("--tokenizer", inputs.tokenizer(), "--dedup", "minhash", "--max-reject-rate", "1"),
    ]


def _table(inbox: Path, output: Path, folder: Path, watch: _Watch) -> str:
    manifest = read_manifest(output)
    taken = [name for names in inputs_of(manifest) for name in names]
    once = sorted(taken) == sorted(path.name for path in inbox.iterdir())
    appended = folder / "appended"
    append_seconds = _append(inbox, appended, manifest)
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


def _append(inbox: Path, output: Path, manifest: Manifest) -> float:
    """Make the same generations by --append, and return the seconds that it took."""
    copy = output.with_name("appended-in")
    copy.mkdir()
    seconds = 0.0
    for names in inputs_of(manifest):
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
