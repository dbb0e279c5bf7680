from typing import Any

from pipelines.report.showcase import MAX_SHOWN, trim


def rows(number: int, text: str = "x") -> list[dict[str, Any]]:
    return [{"text": text, "position": position} for position in range(number)]


def test_a_report_with_many_reasons_shows_fewer_of_each() -> None:
    shown = trim({f"s{n}": {"": rows(20), "a": rows(20), "b": rows(1)} for n in range(100)})
    counts = [len(examples) for reasons in shown.values() for examples in reasons.values()]
    assert 0.5 * MAX_SHOWN < sum(counts) <= MAX_SHOWN
    assert len(set(counts)) == 2, "as many of every reason that has them"
    assert shown["s0"]["a"] == rows(20)[: len(shown["s0"]["a"])]
    assert min(counts) == 1, "no reason is left out"
