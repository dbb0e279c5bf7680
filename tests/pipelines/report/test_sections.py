from typing import Any

from pipelines.report.sections import Amounts, duplicates, has_rejects, in_order, sums


def test_sums_are_over_one_verdict_or_all() -> None:
    rows = [
        {"verdict": "kept", "rows": 5, "bytes": 50, "tokens": 10},
        {"verdict": "dropped", "rows": 2, "bytes": 7, "tokens": 0},
        {"verdict": "kept", "rows": 1},
    ]
    assert sums(rows) == Amounts(8, 57, 10)
    assert sums(rows, "kept") == Amounts(6, 50, 10)
    assert sums([]) == Amounts(0, 0, 0)


def test_known_names_stand_in_their_order_and_others_last() -> None:
    assert in_order(["z", "segment", "a", "read"], ["read", "clean", "segment"]) == [
        "read",
        "segment",
        "a",
        "z",
    ]


def test_groups_of_duplicates_stand_in_the_order_of_their_sizes() -> None:
    counts = {
        "exact": {"groups": {"100+": 1, "2": 4000, "5-9": 7}},
        "near": {"band_groups": {}, "compared": 12345},
    }
    shown = dict(duplicates(counts))
    assert shown == {
        "exact groups": {"2": 4000, "5-9": 7, "100+": 1},
        "near band_groups": {},
        "near compared": 12345,
    }
    assert isinstance(sizes := shown["exact groups"], dict)
    assert list(sizes) == ["2", "5-9", "100+"]
    assert not dict(duplicates({}))


def test_rejects_are_shown_where_one_has_an_example() -> None:
    report: dict[str, Any] = {
        "funnel": {"a": [{"verdict": "quarantined", "reason": "bad-json"}]},
        "examples": {"a": {"": [{}]}},
    }
    assert not has_rejects(report)
    report["examples"]["a"]["bad-json"] = [{}]
    assert has_rejects(report)
