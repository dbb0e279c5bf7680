"""What the steps of a watch's pipeline remember, and do when a task fails."""

import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from pipelines.engine import beam
from pipelines.engine.stream import FORGOTTEN_AFTER, NUM_GROUPS, Judge, Look, Map, Ticks
from pipelines.engine.task import packed
from shards.errors import UserError


class Steps:
    """Takes note of failures."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def fail(self, _: Any, message: str) -> bool:
        self.messages.append(message)
        return True


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (UserError("the file is gone"), "the file is gone"),
        (ValueError("odd bytes\nin it"), "in it"),
        (KeyError("field"), "KeyError: 'field'"),
        (
            RuntimeError('Traceback:\n  File "x"\nArrowInvalid: no table\n'),
            "ArrowInvalid: no table",
        ),
    ],
)
def test_whatever_a_task_raises_is_noted_and_the_stream_goes_on(
    error: Exception, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps()
    monkeypatch.setattr("pipelines.engine.stream._steps", lambda _: steps)
    Map(b"", packed(_raiser, pickle.dumps(error)), 0).process("task")
    assert steps.messages == [message]


def _raiser(error: bytes) -> Any:
    def run(_: Any) -> None:
        raise pickle.loads(error)

    return run


class Counting:
    """Takes a key when it is sighted for the second time."""

    def __init__(self) -> None:
        self.useless: set[str] = set()
        self.over = False

    def ended(self) -> bool:
        return self.over

    def look(self, _: float) -> Iterator[tuple[str, str]]:
        return ((f"file-{i}", "seen") for i in range(1000))

    def judge(self, key: str, _: str, memory: int | None) -> tuple[int, list[str]]:
        times = (memory or 0) + 1
        return times, [key] if times == 2 else []

    def forgets(self, key: str, _: int) -> bool:
        return key in self.useless


class State:
    """What an engine keeps of a group."""

    value: Any = None

    def read(self) -> Any:
        return pickle.loads(self.value) if self.value else None

    def write(self, value: Any) -> None:
        self.value = pickle.dumps(value)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    steps = Counting()
    monkeypatch.setattr("pipelines.engine.stream._steps", lambda _: steps)
    return steps


@pytest.mark.usefixtures("counting")
def test_a_look_is_a_few_groups_and_a_key_is_always_in_the_same() -> None:
    looks = [[*Look(b"", 1.0).process(None)] for _ in range(2)]
    assert looks[0] == looks[1]
    assert len(looks[0]) == NUM_GROUPS
    assert sorted(key for _, group in looks[0] for key, _ in group) == sorted(
        f"file-{i}" for i in range(1000)
    )


def test_keys_of_a_group_are_remembered_until_that_is_of_no_use(counting: Counting) -> None:
    judge, state = Judge(b""), State()
    both, one = [("a", "seen"), ("b", "seen")], [("b", "seen")]
    assert [*judge.process((7, both), state)] == []
    assert [*judge.process((7, both), state)] == ["a", "b"]
    counting.useless = {"a"}
    assert [*judge.process((7, one), state)] == []
    assert list(state.read()) == ["b"]


@pytest.mark.usefixtures("counting")
def test_a_key_that_was_not_sighted_for_an_hour_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    monkeypatch.setattr("pipelines.engine.stream.time.time", lambda: now)
    judge, state = Judge(b""), State()
    assert [*judge.process((7, [("a", "seen"), ("b", "seen")]), state)] == []
    now += FORGOTTEN_AFTER
    assert [*judge.process((7, [("b", "seen")]), state)] == ["b"]
    assert list(state.read()) == ["b"]


class Tracker:
    """What an engine knows of the ticks that are left."""

    def __init__(self) -> None:
        self.start = 0
        self.resumes: list[float] = []

    def current_restriction(self) -> Any:
        return SimpleNamespace(start=self.start, stop=1000)

    def try_claim(self, number: int) -> bool:
        self.start = number + 1
        return number < 1000

    def defer_remainder(self, at: Any) -> None:
        self.resumes.append(at.micros / 1e6)

    def set_watermark(self, at: Any) -> None:
        self.watermark = at.micros / 1e6


def test_ticks_that_are_late_are_one_and_a_bundle_has_no_other(
    counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("pipelines.engine.stream.time.time", lambda: now)
    monkeypatch.setattr("pipelines.engine.stream.time.sleep", lambda _: None)
    tracker, ticks = Tracker(), Ticks(b"")
    element = (beam.Timestamp(100), beam.MAX_TIMESTAMP, 5.0)
    seen = []
    for seconds_of_a_look in (1.0, 23.0, 0.0):
        for tick in ticks.process(element, tracker, tracker):
            seen.append(tick.timestamp.micros / 1e6)
            now += seconds_of_a_look  # what follows is in the same bundle
    assert seen == [100.0, 105.0, 120.0]
    assert tracker.resumes == [105.0, 124.0, 125.0]
    assert tracker.watermark == 120.0
    counting.over = True
    assert [*ticks.process(element, tracker, tracker)] == []
    assert tracker.start > 1000
