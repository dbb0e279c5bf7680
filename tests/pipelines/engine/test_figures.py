from pipelines.engine.figures import figures, progress_counts


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
