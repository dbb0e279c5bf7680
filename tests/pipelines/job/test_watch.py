"""Watches as people run them: real processes, arriving files, kills, and disks that fill up.

Guarantee: With `--watch` each file is in exactly one generation, whatever is killed, worker or
driver.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines.job.command import main
from pipelines.job.watch import WatchTotals
from pipelines.wudao import CORPUS
from shards.manifest import NAME, read_manifest
from tests.nightly import a_few
from tests.pipelines.deadly import EXIT
from tests.pipelines.runs import content, page
from tests.trainer.corpus import build

pytestmark = pytest.mark.slow

TEXT = "pipelines.text"
DEADLY = "tests.pipelines.deadly"
ROOT = Path(__file__).parents[3]
NEVER = ("--every", "1h")
OFTEN = ("--every", "2s")


def lines(*numbers: int) -> str:
    """Return one line of JSON per number, each with a different text."""
    texts = [{"text": page(number)["content"]} for number in numbers]
    return "".join(json.dumps(text, ensure_ascii=False) + "\n" for text in texts)


def arrive(folder: Path, name: str, *numbers: int, text: str = "") -> Path:
    """Move a file into the folder by renaming it; the file settled long ago."""
    temporary = folder / f"{name}.part"
    temporary.write_text(text or lines(*numbers))
    os.utime(temporary, (1e9, 1e9))
    return temporary.rename(folder / name)


def command(folder: Path, output: Path, *flags: object) -> list[str]:
    words: Sequence[object] = [
        *("--input", folder, "--output", output, "--tokenizer", CORPUS.sample_tokenizer),
        *("--languages", "all", "--language-threshold", 0, "--validation", 0, "--shards", 1),
        *flags,
    ]
    return [*map(str, words)]


@dataclass
class Watch:
    """A watch that is running or has ended."""

    process: subprocess.Popen[bytes]
    folder: Path
    output: Path
    log: Path

    @property
    def logged(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def generations(self) -> list[list[str]]:
        """Return the files of each generation."""
        if not (self.output / NAME).exists():
            return []
        made = read_manifest(self.output).generations
        return [[entry.path for entry in generation.inputs] for generation in made]

    @property
    def names(self) -> list[str]:
        """Return all files of the dataset, by generation."""
        return [name for generation in self.generations for name in generation]

    def until(self, done: Callable[[], object], *, seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while not done():
            assert self.process.poll() is None, self.logged
            assert time.monotonic() < end, self.logged
            time.sleep(0.05)

    def until_logged(self, words: str) -> None:
        self.until(lambda: words in self.logged)

    def until_committed(self, *names: str) -> None:
        self.until(lambda: {*names} <= {*self.names})

    def end(self, number: int = signal.SIGTERM) -> None:
        """End the watch by a signal, upon which the watch commits the settled files."""
        self.process.send_signal(number)
        assert self.process.wait(timeout=90) == 0, self.logged
        assert "the watch has ended" in self.logged
        assert not (self.output / "ledger.json").exists()
        assert not (self.output / ".work").exists()


@contextmanager
def watching(
    folder: Path,
    *flags: object,
    module: str = TEXT,
    name: str = "out",
) -> Iterator[Watch]:
    """Yield a watch on a folder, in its own process group; the watch ends with the block."""
    folder.mkdir(exist_ok=True)
    output, log = folder.parent / name, folder.parent / f"{name}.log"
    words = ["-m", module, *command(folder, output, "--watch", "--settle", "1s", *flags)]
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, *words],
            stdout=file,
            stderr=file,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )
    try:
        yield Watch(process, folder, output, log)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def check_as_appended(watch: Watch, *flags: object, module: str = TEXT) -> None:
    """Check that each file is in exactly one generation, and that --append gives the same bytes."""
    assert sorted(watch.names) == sorted({*watch.names})
    folder, output = watch.folder.parent / "appended-in", watch.folder.parent / "appended"
    folder.mkdir()
    for generation in watch.generations:
        for name in generation:
            shutil.copy2(watch.folder / name, folder / name)
        assert main(module, command(folder, output, "--append", *flags)) == 0
    assert content(watch.output) == content(output)
    assert read_manifest(watch.output).identity == read_manifest(output).identity


def test_files_become_the_generations_that_append_makes(tmp_path: Path) -> None:
    began = time.monotonic()
    with watching(tmp_path / "in", *OFTEN, "--runner=DirectRunner", "--workers", 2) as watch:
        watch.until_logged("watching")
        arrive(watch.folder, "a.jsonl", *range(20))
        (watch.folder / "half.jsonl.part").write_text(lines(1)[:20])
        (watch.folder / ".half.jsonl").write_text(lines(1)[:20])
        slow = watch.folder / "slow.jsonl"
        with slow.open("w") as file:
            for number in range(100, 120):
                half = len(lines(number)) // 2
                for part in (lines(number)[:half], lines(number)[half:]):
                    file.write(part)
                    file.flush()
                    time.sleep(0.1)
        watch.until_committed("a.jsonl", "slow.jsonl")
        arrive(watch.folder, "b.jsonl", *range(10, 30))
        watch.end()
    assert len(watch.generations) >= 2
    lag = json.loads((watch.output / "report.json").read_bytes())["lag"]
    assert 0 < lag["median"] <= lag["worst"] <= time.monotonic() - began
    check_as_appended(watch)


@pytest.mark.parametrize(
    "begun",
    a_few([".work/map/*.json", "manifest.json", "ledger.json", ".work/*/*", "g0002-*"], of_each=3),
)
def test_after_a_kill_at_any_moment_the_same_command_continues(tmp_path: Path, begun: str) -> None:
    """The watch is killed as soon as a file with a given name exists."""
    folder = tmp_path / "in"
    with watching(folder, *OFTEN) as watch:
        for number in range(6):
            arrive(folder, f"{number}.jsonl", *range(10 * number, 10 * number + 12))
            if number == 2:
                watch.until(lambda: watch.generations or [*watch.output.glob(begun)])
        watch.until(lambda: [*watch.output.glob(begun)])
    with watching(folder, *OFTEN) as watch:
        watch.until(lambda: len(watch.names) == 6)
        arrive(folder, "last.jsonl", 99)
        watch.end(signal.SIGINT)
    assert len(watch.names) == 7
    check_as_appended(watch)


def test_a_file_with_a_problem_is_named_once_and_added_when_it_is_fixed(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "empty.jsonl").touch()
    (folder / "link.jsonl").symlink_to("later")
    arrive(folder, "bad.jsonl", text=lines(1) + json.dumps({"text": EXIT}) + "\n" + lines(2))
    arrive(folder, "a.jsonl", *range(20))
    with watching(folder, *OFTEN, module=DEADLY) as watch:
        watch.until_committed("a.jsonl")
        arrive(folder, "a.jsonl", *range(25))
        watch.until_logged("a.jsonl is in the dataset and has changed since")
        for name in ("empty", "link"):
            watch.until_logged(f"{name}.jsonl is ")
        with watching(folder, module=DEADLY) as second:
            assert second.process.wait(timeout=60) == 2
        assert f"is being written by process {watch.process.pid} on host" in watch.logged
        arrive(folder, "later", 50)
        arrive(folder, "empty.jsonl", 51)
        arrive(folder, "bad.jsonl", 1, 2)
        arrive(folder, "a.jsonl", *range(20))
        watch.until_committed("empty.jsonl", "link.jsonl", "bad.jsonl")
        watch.end()
    for name in ("a", "empty", "link"):
        assert watch.logged.count(f"in/{name}.jsonl is ") == 1
    assert watch.logged.count("bad.jsonl failed and is tried again later: ") == 1
    assert "3 workers died one after the other at the map of bytes " in watch.logged
    report = json.loads((watch.output / "report.json").read_bytes())
    assert report["left_out"] == []
    check_as_appended(watch, module=DEADLY)


def test_it_waits_for_missing_files_and_a_second_signal_stops_it_at_once(tmp_path: Path) -> None:
    folder, away, model = tmp_path / "in", tmp_path / "away", tmp_path / "own.model"
    sample = Path(CORPUS.sample_tokenizer.partition(":")[2])
    shutil.copyfile(sample, model)
    given = ("--tokenizer", f"sentencepiece:{model}")
    with watching(folder, *OFTEN, *given) as watch:
        arrive(folder, "a.jsonl", *range(20))
        watch.until_committed("a.jsonl")
        folder.rename(away)
        watch.until_logged("waiting, then trying again: The input")
        away.rename(folder)
        watch.until_logged("the problem is solved")
        model.write_bytes(sample.read_bytes()[:1000])
        arrive(folder, "b.jsonl", *range(20, 30))
        watch.until(lambda: watch.logged.count("waiting, then trying again") == 2)
        shutil.copyfile(sample, model)
        watch.until_committed("b.jsonl")
        folder.rename(away)
        watch.until(lambda: watch.logged.count("waiting, then trying again") == 3)
        watch.process.send_signal(signal.SIGINT)
        watch.until_logged("ending")
        watch.process.send_signal(signal.SIGTERM)
        assert watch.process.wait(timeout=30) == 130
    away.rename(folder)
    check_as_appended(watch, *given)


def test_files_that_have_arrived_by_until_are_committed(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(4):
        arrive(folder, f"{number}.jsonl", *range(100 * number, 100 * number + 20))
    with watching(folder, *NEVER, "--until", "15s") as watch:
        assert watch.process.wait(timeout=90) == 0, watch.logged
    assert watch.names == [f"{number}.jsonl" for number in range(4)]
    check_as_appended(watch)


def test_the_rate_is_that_since_the_generation_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (generation,) = build(tmp_path / "dataset").generations
    tokens = sum(shard.tokens for shard in generation.shards())
    monkeypatch.setattr(time, "time", lambda: 1_010.0)
    totals = WatchTotals(since=1_000.0)
    totals.add(generation, [])
    assert (totals.tokens, totals.rate) == (tokens, tokens / 10)
