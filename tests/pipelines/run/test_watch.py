"""The driver of a watch: when a generation is due, what it does with notes, how it ends."""

import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from pipelines.engine.task import run_packed
from pipelines.inputs.files import InputFile
from pipelines.map.notes import Notes, Odd, file_key
from pipelines.run import watch as watches
from pipelines.run.append import append
from pipelines.run.command import main
from pipelines.run.watch import Arrived, Waited, is_due
from shards.errors import UserError
from shards.manifest import read_manifest
from tests.pipelines.runs import FLAGS, MODULE, content, page, small, write_wudao

NOW = 1_000_000.0
FILE = InputFile(source="s", path="/in/a", relative="a", bytes=1, mtime_ns=1)


def arrived(*, waited: float = 0, tokens: int = 0) -> Arrived:
    return Arrived(file=FILE, at=NOW - waited, waiting=set(), names=("t",), tokens=tokens)


@pytest.mark.parametrize(
    ("ready", "tokens", "due"),
    [
        ([], 0, False),
        ([arrived(waited=59)], 0, False),
        ([arrived(waited=1), arrived(waited=60)], 0, True),
        ([arrived(tokens=50), arrived(tokens=49)], 100, False),
        ([arrived(tokens=50), arrived(tokens=50)], 100, True),
    ],
)
def test_a_generation_is_due_by_its_oldest_file_or_by_tokens(
    ready: list[Arrived], tokens: int, *, due: bool
) -> None:
    assert is_due(ready, every=60, tokens=tokens, now=NOW) is due


def test_a_file_is_mapped_when_all_of_its_tasks_are_and_it_has_some() -> None:
    assert not Arrived(file=FILE, at=0, waiting={"b"}, names=("a", "b")).mapped
    assert not Arrived(file=FILE, at=0, waiting=set(), names=()).mapped
    assert Arrived(file=FILE, at=0, waiting=set(), names=("a",)).mapped


def test_the_lag_ends_when_it_is_asked_for() -> None:
    began = time.time()
    lag = Waited([began - 10, began - 20, began - 60])
    assert dict(lag).keys() == {"median", "worst"}
    assert 20 <= lag["median"] < lag["worst"] < 100
    assert dict(Waited([])) == {}
    with pytest.raises(KeyError):
        lag["mean"]


class InlineJob:
    """The stream without an engine: its steps, one after the other, in a thread."""

    made: list["InlineJob"]

    def __init__(self, _: Any, *, steps: bytes, run: bytes, **__: Any) -> None:
        prepare, argument = pickle.loads(steps)
        self._steps, self._run = prepare(argument), run
        self.name, self.error = "inline", ""
        self._memory: dict[str, Any] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        InlineJob.made.append(self)

    def _serve(self) -> None:
        while not self._stop.wait(0.02) and not self._steps.ended():
            for key, sighting in self._steps.look(time.time()):
                judged = self._steps.judge(key, sighting, self._memory.get(key))
                self._memory[key], tasks = judged
                for task in tasks:
                    run_packed(self._run, task)

    def fail(self) -> None:
        self.error = "killed"
        self._stop.set()
        self._thread.join()

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()


class Nowhere:
    """An engine that there is no need to start."""

    own, page = False, ""

    def __init__(self, flags: Any) -> None:
        self.given = flags

    def __enter__(self) -> "Nowhere":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def flags(self) -> list[str]:
        return []


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    InlineJob.made = []
    monkeypatch.setattr(watches, "StreamJob", InlineJob)
    monkeypatch.setattr(watches, "Engine", Nowhere)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setattr("pipelines.compiled.available", lambda: False)


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Ends a watch, as a signal does."""
    event = threading.Event()
    monkeypatch.setattr(watches, "_told_to_stop", lambda: nullcontext(event))
    yield event
    event.set()


def watched(output: Path, folder: Path, **changes: Any) -> Callable[[], None]:
    options = small(output, folder, watch=True, workers=1, settle=0.1, every=0.1, **changes)
    return lambda: watches.watch(MODULE, options)


@contextmanager
def meanwhile(action: Callable[[], None], stop: threading.Event) -> Iterator[None]:
    """Do something in a thread while the block runs; if it fails, the watch ends."""
    failures: list[Exception] = []

    def run() -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - the test raises it
            failures.append(error)
            stop.set()

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join()
    if failures:
        raise failures[0]


def write(folder: Path, name: str, *numbers: int) -> Path:
    path = write_wudao(folder / f"{name}.tmp", [page(number) for number in numbers])
    return path.rename(folder / name)


@pytest.mark.slow
@pytest.mark.usefixtures("inline")
def test_a_watch_makes_the_generations_that_append_makes(
    stop: threading.Event, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "corpusmill")
    folder, output = tmp_path / "in", tmp_path / "out"
    write(folder, "part-1.json", 1, 2, 3)

    key = file_key("wudao", "part-3.json")

    def arrive() -> None:
        wait_until((output / "manifest.json").exists)
        InlineJob.made[-1].fail()
        write(folder, "part-2.json", 3, 4, 5)
        wait_until(lambda: read_manifest(output).number == 2)
        write(folder, "part-3.json", 6)
        wait_until((output / ".work" / "watch" / f"{key}.taken.json").exists)
        stop.set()

    with meanwhile(arrive, stop):
        watched(output, folder)()
    manifest = read_manifest(output)
    assert [[entry.path for entry in g.inputs] for g in manifest.generations] == [
        ["part-1.json"],
        ["part-2.json"],
        ["part-3.json"],
    ]
    assert "the engine's job ended (killed): it is submitted again in 1 s" in caplog.text
    assert not (output / ".work").exists()
    again = tmp_path / "again"
    for number in (1, 2, 3):
        write_wudao(again / f"part-{number}.json", [])
        (again / f"part-{number}.json").write_bytes((folder / f"part-{number}.json").read_bytes())
        append(MODULE, small(tmp_path / "appended", again, append=True))
    assert content(output) == content(tmp_path / "appended")


@pytest.mark.slow
@pytest.mark.usefixtures("inline")
def test_an_old_job_makes_room_for_a_new_one_and_nothing_is_taken_twice(
    stop: threading.Event, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "RENEWED_AFTER", 0.0)
    folder, output = tmp_path / "in", tmp_path / "out"
    write(folder, "part-1.json", 1, 2, 3)

    def arrive() -> None:
        wait_until((output / "manifest.json").exists)
        wait_until(lambda: len(InlineJob.made) > 2)
        write(folder, "part-2.json", 3, 4, 5)
        wait_until(lambda: read_manifest(output).number == 2)
        stop.set()

    with meanwhile(arrive, stop):
        watched(output, folder)()
    assert all(job.ended and not job.error for job in InlineJob.made)
    manifest = read_manifest(output)
    assert [[entry.path for entry in g.inputs] for g in manifest.generations] == [
        ["part-1.json"],
        ["part-2.json"],
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("inline")
def test_a_full_disk_is_waited_for(
    stop: threading.Event,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    write(folder, "part-1.json", 1, 2, 3)
    tries = []
    real = watches.grow

    def grow(*arguments: Any, **named: Any) -> Any:
        tries.append(1)
        if len(tries) < 3:
            raise UserError("no space left on the disk")
        stop.set()
        return real(*arguments, **named)

    monkeypatch.setattr(watches, "grow", grow)
    monkeypatch.setattr(watches, "TOLD_EVERY", 0.1)
    watched(output, folder)()
    assert "waiting: the generation cannot be made yet; tried again: no space left" in caplog.text
    assert len(read_manifest(output).generations) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("inline")
def test_what_is_odd_is_told_once_and_what_failed_stays_out(
    stop: threading.Event, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    write(folder, "part-1.json", 1, 2, 3)
    (folder / "part-2.json").write_text("no JSON")
    note = output / ".work" / "watch" / f"{file_key('wudao', 'part-1.json')}.taken.json"

    def arrive() -> None:
        wait_until((output / "manifest.json").exists)
        wait_until(lambda: not note.exists() and "failed" in caplog.text)
        write(folder, "part-1.json", 1, 2, 3, 4)
        wait_until(lambda: "come back" in caplog.text)
        Notes(output / ".work").write("f" * 24, Odd(file=FILE, why="is odd"))
        wait_until(lambda: "/in/a is odd" in caplog.text)
        time.sleep(2.2)
        stop.set()

    with meanwhile(arrive, stop):
        watched(output, folder)()
    assert caplog.text.count("come back with another size") == 1
    assert caplog.text.count("part-2.json failed and is tried again later") == 1
    assert caplog.text.count("/in/a is odd") == 1
    assert "1 files are taken and not mapped" in caplog.text
    (generation,) = read_manifest(output).generations
    assert [entry.path for entry in generation.inputs] == ["part-1.json"]


@pytest.mark.parametrize("runner", ["--runner=DirectRunner", "--runner=FnApiRunner"])
def test_the_in_process_runner_is_refused_with_commands_that_work(
    runner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(MODULE, [*FLAGS, "--watch", "--output", str(tmp_path / "out"), runner]) == 2
    said = capsys.readouterr().err
    assert "ends a stream without a word" in said
    assert "go install github.com/apache/beam" in said
    assert "--flink_master" in said
    assert not (tmp_path / "out").exists()


def test_an_input_that_does_not_exist_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.run.watch.Engine", nullcontext)  # it is found before
    flags = ["--watch", "--input", str(tmp_path / "none"), "--tokenizer", "tiktoken:gpt2"]
    assert main(MODULE, [*flags, "--output", str(tmp_path / "out")]) == 2
    assert f"The input {tmp_path / 'none'} does not exist" in capsys.readouterr().err


def wait_until(what: Callable[[], bool], *, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)
