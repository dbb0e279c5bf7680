from typing import Any

from pipelines.engine.figures import figures, progress_counts


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


def test_a_split_tells_its_records() -> None:
    segment = {"tokens": 50, "tallies": TALLIES}
    record = {"segments": [segment, {"tokens": 0, "tallies": []}], "unsampled": 4}
    assert figures("map", record) == {**COUNTED, "records not sampled": 4, "tokens out": 50}
    assert progress_counts("map", record) == {"documents": 10, "kept": 5, "dropped": 5}


def test_a_shard_tells_its_records_and_documents() -> None:
    shards = [{"documents": 3, "tokens": 30}, {"documents": 1, "tokens": 9}]
    record = {"shards": shards[:1], "validation": shards[1:], "tallies": TALLIES}
    assert figures("merge", record) == {**COUNTED, "documents out": 4, "tokens out": 39}
    assert progress_counts("merge", record) == {}


def test_dedup_tells_what_it_found_and_what_is_dropped() -> None:
    assert figures("dedup", {"drops": 3, "compared": 8, "failed": 2}) == {
        "tasks": 1,
        "duplicates found": 3,
        "documents compared": 8,
        "documents not similar": 2,
    }
    record = {"dropped": {"a": {"duplicate": 2, "near-duplicate": 1}, "b": {"duplicate": 3}}}
    assert figures("drops", record) == {
        "tasks": 1,
        "records dropped": 6,
        "records dropped (duplicate)": 5,
        "records dropped (near-duplicate)": 1,
    }
    assert progress_counts("drops", record) == {"documents dropped": 6}
    assert progress_counts("drops", {"dropped": {}}) == {}


def test_a_task_of_any_other_phase_tells_that_it_is_done() -> None:
    assert figures("slots", {"signatures": []}) == {"tasks": 1}
