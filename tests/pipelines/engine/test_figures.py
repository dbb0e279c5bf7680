import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.engine.figures import Done, Figures, Spread


@pytest.mark.parametrize(
    "spread",
    [
        Spread(0, 0, 0, 0),
        Spread(1, 7, 7, 7),
        Spread(2, 9, 2, 7),
        Spread(3, 9, 2, 4),
        Spread(6, 30, 1, 20),
        Spread(5, 5, 1, 1),
        Spread(1000, 123_456, 3, 500),
    ],
)
def test_the_values_of_a_spread_have_its_count_total_least_and_most(spread: Spread) -> None:
    values = list(spread.values())
    assert (len(values), sum(values)) == (spread.count, spread.total)
    assert (min(values, default=0), max(values, default=0)) == (spread.least, spread.most)


def figures(folder: Path, phase: str, record: Any, *, seconds: float | None = None) -> Figures:
    path = folder / "record.json"
    path.write_text(json.dumps(record))
    return Done(phase=phase, record=path, seconds=seconds).figures()


def tally(verdict: str, reason: str, rows: int, size: int) -> dict[str, Any]:
    return {"verdict": verdict, "reason": reason, "rows": rows, "bytes": size, "group": ""}


TALLIES = [
    tally("kept", "", 5, 500),
    tally("dropped", "duplicate", 2, 200),
    tally("dropped", "duplicate", 1, 100),
    tally("dropped", "glm-few-chars", 1, 9),
    tally("quarantined", "bad-json", 1, 0),
]
COUNTED = {
    "tasks": 1,
    "records read": 10,
    "records kept": 5,
    "records dropped": 4,
    "records dropped (duplicate)": 3,
    "records dropped (glm-few-chars)": 1,
    "records quarantined": 1,
    "records quarantined (bad-json)": 1,
    "bytes in": 809,
}


def test_a_split_tells_its_records_and_the_lengths_of_its_documents(tmp_path: Path) -> None:
    segment = {"documents": 5, "tokens": 50, "shortest": 3, "longest": 20, "tallies": TALLIES}
    empty = {"documents": 0, "tokens": 0, "longest": 0, "tallies": []}
    record = {"segments": [segment, empty], "unsampled": 4, "seconds": 1.25}
    told = figures(tmp_path, "map", record, seconds=9.0)
    assert told.counts == {**COUNTED, "records not sampled": 4, "tokens out": 50}
    assert told.spreads == (
        ("tokens of a document", Spread(5, 50, 3, 20)),
        ("milliseconds of a split", Spread(1, 1250, 1250, 1250)),
    )


def test_a_shard_tells_its_records_and_documents(tmp_path: Path) -> None:
    shards = [{"documents": 3, "tokens": 30}, {"documents": 1, "tokens": 9}]
    record = {"shards": shards[:1], "validation": shards[1:], "tallies": TALLIES}
    told = figures(tmp_path, "merge", record, seconds=0.5)
    assert told.counts == {**COUNTED, "documents out": 4, "tokens out": 39}
    assert told.spreads == (("milliseconds of a task", Spread(1, 500, 500, 500)),)


def test_dedup_tells_what_it_found_and_what_is_dropped(tmp_path: Path) -> None:
    found = {"drops": 3, "compared": 8, "failed": 2}
    assert figures(tmp_path, "dedup", found).counts == {
        "tasks": 1,
        "duplicates found": 3,
        "documents compared": 8,
        "documents not similar": 2,
    }
    dropped = {"a": {"duplicate": 2, "near-duplicate": 1}, "b": {"duplicate": 3}}
    assert figures(tmp_path, "drops", {"dropped": dropped}).counts == {
        "tasks": 1,
        "records dropped": 6,
        "records dropped (duplicate)": 5,
        "records dropped (near-duplicate)": 1,
    }


def test_a_task_of_any_other_phase_tells_that_it_is_done(tmp_path: Path) -> None:
    assert figures(tmp_path, "slots", {"signatures": []}) == Figures(counts={"tasks": 1})
