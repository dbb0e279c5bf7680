import io
import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipelines.engine import progress
from pipelines.engine.progress import Progress
from tests.pipelines.duties import wait_for


class Clock:
    """Time that passes only when a test sets it."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


def shown(work: Path, weights: Mapping[str, int], *, stream: io.StringIO | None = None) -> Progress:
    tasks = {work / "map" / f"{name}.json": weight for name, weight in weights.items()}
    return Progress("map", tasks, stream=stream or io.StringIO())


def finish(work: Path, name: str, *, kept: int = 0, dropped: int = 0) -> None:
    (work / "map").mkdir(exist_ok=True)
    tallies = [
        {"verdict": "kept", "reason": "", "rows": kept, "bytes": 0},
        {"verdict": "dropped", "reason": "short", "rows": dropped, "bytes": 0},
    ]
    record = {"unsampled": 0, "segments": [{"tokens": 0, "tallies": tallies}]}
    (work / "map" / f"{name}.json").write_text(json.dumps(record))


def test_the_line_follows_the_records(tmp_path: Path, clock: Clock) -> None:
    line = shown(tmp_path, {"a": 1, "b": 1, "c": 2})
    assert line.line() == "map   0 % | 0:00"
    clock.now += 60
    finish(tmp_path, "a", kept=1000, dropped=500)
    assert line.line() == "map  25 % | 1,500 documents | 1,000 kept | 500 dropped | ETA 3:00"
    finish(tmp_path, "c", kept=500)
    assert line.line() == "map  75 % | 2,000 documents | 1,500 kept | 500 dropped | ETA 0:20"
    finish(tmp_path, "b")
    clock.now += 3600
    assert line.line() == "map 100 % | 2,000 documents | 1,500 kept | 500 dropped | 1:01:00"


def test_the_line_is_shown_while_the_block_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shards.progress.PLAIN_SECONDS", 0.01)
    stream = io.StringIO()
    with shown(tmp_path, {"a": 1}, stream=stream):
        wait_for(lambda: stream.getvalue().count("\n") >= 3)
    assert set(stream.getvalue().splitlines()) == {"map   0 % | 0:00"}


def test_a_line_that_nobody_reads_fails_nothing(tmp_path: Path) -> None:
    class Closed(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    with shown(tmp_path, {"a": 1}, stream=Closed()):
        finish(tmp_path, "a", kept=1)
    assert (tmp_path / "map" / "a.json").exists()
