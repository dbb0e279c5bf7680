import dataclasses
from pathlib import Path
from typing import Any

import pytest

from pipelines.map.mapper import SplitRecord
from pipelines.merge.tasks import MergeRecord
from pipelines.quality import Quality
from pipelines.quality.catalog import REASONS
from pipelines.report import sums
from pipelines.segments.audit import Tally
from pipelines.segments.rows import REJECTS


def tally(reason: str, *, rows: int = 1, verdict: str = "dropped", group: str = "") -> Tally:
    return Tally(
        verdict=verdict, reason=reason, rows=rows, bytes=10 * rows, tokens=2 * rows, group=group
    )


def merged(*tallies: Tally, counts: dict[str, int] | None = None) -> MergeRecord:
    return MergeRecord(
        shards=(),
        validation=(),
        audit=(),
        rejects=(),
        dropped_texts=(),
        tallies=tallies,
        histograms={"bytes": {"kept": counts or {}}},
    )


def test_the_funnel_goes_through_the_stages_in_order_and_ends_with_what_was_kept() -> None:
    rows = sums.funnel(
        [
            tally("", verdict="kept", rows=5),
            tally("duplicate"),
            tally("near-duplicate"),
            tally("tokenizer-failed", verdict="quarantined"),
            tally("contaminated"),
            tally("glm-few-chars"),
            tally("language-score"),
            tally("language"),
            tally("empty"),
            tally("url-blocklist"),
            tally("too-short"),
            tally("too-short", group="x"),
            tally("wrong-type", verdict="quarantined"),
            tally("bad-json", verdict="quarantined"),
        ]
    )
    assert [(row["stage"], row["reason"], row["rows"]) for row in rows] == [
        ("read", "bad-json", 1),
        ("document", "too-short", 2),
        ("document", "wrong-type", 1),
        ("block", "url-blocklist", 1),
        ("clean", "empty", 1),
        ("langid", "language", 1),
        ("langid", "language-score", 1),
        ("quality", "glm-few-chars", 1),
        ("decontaminate", "contaminated", 1),
        ("tokenize", "tokenizer-failed", 1),
        ("dedup", "duplicate", 1),
        ("dedup", "near-duplicate", 1),
        ("", "", 5),
    ]
    assert rows[1] == {
        "stage": "document",
        "verdict": "dropped",
        "reason": "too-short",
        "rows": 2,
        "bytes": 20,
        "tokens": 4,
    }


@pytest.mark.parametrize("reason", [*sorted(REJECTS), *REASONS])
def test_every_reason_has_a_stage_of_its_own_kind(reason: str) -> None:
    (row,) = sums.funnel([tally(reason)])
    wanted = {"read", "document", "tokenize"} if reason in REJECTS else {"quality"}
    assert row["stage"] in wanted


def split_record(source: str, seconds: dict[str, float]) -> SplitRecord:
    fields: dict[str, Any] = {field.name: 0 for field in dataclasses.fields(SplitRecord)}
    fields |= {"source": source, "cpu_seconds": seconds, "segments": ()}
    return SplitRecord(**fields)  # the other fields do not matter


def test_cpu_seconds_are_added_up_by_source_and_stage() -> None:
    records = [split_record("b", {"read": 1.0}), split_record("a", {"read": 0.5, "clean": 0.25})]
    records.append(split_record("a", {"read": 0.5, "tokenize": 2.0}))
    assert sums.cpu_seconds(records) == {
        "a": {"read": 1.0, "clean": 0.25, "tokenize": 2.0},
        "b": {"read": 1.0},
    }


def test_only_the_largest_groups_have_rows_of_their_own() -> None:
    tallies = [tally("", verdict="kept", rows=n, group=f"g{n:02}") for n in range(1, 41)]
    tallies += [tally("language", group="g01"), tally("nul", verdict="quarantined", group="g02")]
    figures = sums.figures([], {"a": [merged(*tallies)]}, quality=Quality.parse(["none"]))
    rows = figures["groups"]["a"]
    assert [row["group"] for row in rows[:2]] == ["g40", "g39"]
    assert len(rows) == sums.MOST_GROUPS + 1
    last = rows[-1]
    assert (last["group"], last["groups"]) == (sums.OTHERS, 10)
    assert last["kept"]["rows"] == sum(range(1, 11))
    assert last["dropped"] == {"rows": 1, "bytes": 10, "tokens": 2}
    assert last["quarantined"]["rows"] == 1
    kept = sum(row["kept"]["rows"] for row in rows)
    assert kept == sum(range(1, 41))


def test_a_corpus_without_groups_has_none() -> None:
    figures = sums.figures([], {"a": [merged(tally("x"))]}, quality=Quality.parse(["none"]))
    assert figures["groups"] == {"a": []}


def test_histograms_of_small_sources_are_added_up() -> None:
    sources = {
        f"s{n:02}": [merged(tally("", verdict="kept", rows=100 - n), counts={"7": n + 1})]
        for n in range(sums.MOST_HISTOGRAMS + 3)
    }
    histograms = sums.figures([], sources, quality=Quality.parse(["none"]))["histograms"]
    assert list(histograms) == [*list(sources)[: sums.MOST_HISTOGRAMS], sums.OTHERS]
    assert histograms["s03"] == {"bytes": {"kept": {"7": 4}}}
    assert histograms[sums.OTHERS] == {"bytes": {"kept": {"7": 13 + 14 + 15}}}


def test_rules_that_are_on_are_listed_by_language() -> None:
    quality = Quality.parse(["zh=glm", "gopher"], ["zh:glm.min_chars=7", "gopher.max_words=off"])
    rules = sums.active_rules(quality)
    assert set(rules) == {"zh", "*"}
    assert rules["zh"] == [
        {"metric": "glm.chars", "comparison": "<", "bound": 7.0, "reason": "glm-few-chars"}
    ]
    bounds = {(rule["metric"], rule["comparison"]) for rule in rules["*"]}
    assert ("gopher.words", "<") in bounds
    assert ("gopher.words", ">") not in bounds


def test_a_figure_has_its_machine_beside_it() -> None:
    assert set(sums.machine()) == {"host", "system", "cpu", "cores", "python"}


def test_the_name_of_the_processor(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    assert sums._cpu(path) == ""
    path.write_text("processor\t: 0\nmodel name\t: Abacus 9\nmodel name\t: Abacus 9\n")
    assert sums._cpu(path) == "Abacus 9"
    path.write_text("processor\t: 0\n")
    assert sums._cpu(path) == ""
