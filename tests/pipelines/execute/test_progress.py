import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipelines.execute import progress
from pipelines.execute.progress import StageProgress


def finish(work: Path, name: str, *, kept: int = 0, dropped: int = 0) -> None:
    (work / "map").mkdir(exist_ok=True)
    tallies = [
        {"verdict": "kept", "reason": "", "rows": kept, "bytes": 0},
        {"verdict": "dropped", "reason": "short", "rows": dropped, "bytes": 0},
    ]
    record = {"splits": [{"unsampled": 0}], "segments": [{"tokens": 0, "tallies": tallies}]}
    (work / "map" / f"{name}.json").write_text(json.dumps(record))


def test_the_line_follows_the_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(progress, "time", clock)
    weights = {"a": 1, "b": 1, "c": 2}
    items = {tmp_path / "map" / f"{name}.json": weight for name, weight in weights.items()}
    line = StageProgress("map", items, stream=io.StringIO())
    assert line.line() == "map   0 % | 0:00"
    clock.now += 60
    finish(tmp_path, "a", kept=1000, dropped=500)
    assert line.line() == "map  25 % | 1,500 documents | 1,000 kept | 500 dropped | ETA 3:00"
    finish(tmp_path, "c", kept=500)
    assert line.line() == "map  75 % | 2,000 documents | 1,500 kept | 500 dropped | ETA 0:20"
    finish(tmp_path, "b")
    clock.now += 3600
    assert line.line() == "map 100 % | 2,000 documents | 1,500 kept | 500 dropped | 1:01:00"


def test_a_line_that_nobody_reads_fails_nothing(tmp_path: Path) -> None:
    class Closed(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    with StageProgress("map", {tmp_path / "map" / "a.json": 1}, stream=Closed()):
        finish(tmp_path, "a", kept=1)
