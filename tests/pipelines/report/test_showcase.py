import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipelines.report.showcase import MOST_SHOWN, trim
from pipelines.segments.examples import PER_REASON
from shards import Dataset


def examples(output: Path) -> dict[str, dict[str, list[dict[str, Any]]]]:
    shown: dict[str, dict[str, list[dict[str, Any]]]]
    shown = json.loads((output / "report.json").read_bytes())["examples"]
    return shown


def audit(output: Path) -> list[dict[str, Any]]:
    (generation,) = Dataset.open(output).manifest.generations
    tables = [pq.read_table(output / table.path) for table in generation.audit]
    return [row for table in tables for row in table.to_pylist()]


def test_examples_are_the_first_of_each_final_reason_in_the_order_of_the_dataset(
    reference: Path,
) -> None:
    wanted: dict[str, list[tuple[str, int]]] = {}
    for row in sorted(audit(reference), key=lambda row: row["order"]):
        wanted.setdefault(row["reason"] or "", []).append((row["path"], row["position"]))
    shown = examples(reference)["wudao"]
    assert set(shown) == set(wanted)
    assert {"", "duplicate", "language", "too-short", "wrong-type"} < set(shown)
    for reason, rows in shown.items():
        places = [(row["path"], row["position"]) for row in rows]
        assert places == wanted[reason][:PER_REASON]


def rows(number: int, text: str = "x") -> list[dict[str, Any]]:
    return [{"text": text, "position": position} for position in range(number)]


def test_a_report_with_many_reasons_shows_fewer_of_each() -> None:
    shown = trim({f"s{n}": {"": rows(20), "a": rows(20), "b": rows(1)} for n in range(100)})
    counts = [len(examples) for reasons in shown.values() for examples in reasons.values()]
    assert 0.5 * MOST_SHOWN < sum(counts) <= MOST_SHOWN
    assert len(set(counts)) == 2, "as many of every reason that has them"
    assert shown["s0"]["a"] == rows(20)[: len(shown["s0"]["a"])]
    assert min(counts) == 1, "no reason is left out"
