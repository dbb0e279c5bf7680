from pipelines.merge.items import MergeRecord
from pipelines.quality import QualityRules
from pipelines.report import sums
from pipelines.segments.audit import Tally


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


def test_only_the_largest_groups_have_rows_of_their_own() -> None:
    tallies = [tally("", verdict="kept", rows=n, group=f"g{n:02}") for n in range(1, 41)]
    tallies += [tally("language", group="g01"), tally("nul", verdict="quarantined", group="g02")]
    figures = sums.figures([], {"a": [merged(*tallies)]}, quality=QualityRules.parse(["none"]))
    rows = figures["groups"]["a"]
    assert [row["group"] for row in rows[:2]] == ["g40", "g39"]
    assert len(rows) == sums.MAX_GROUPS + 1
    last = rows[-1]
    assert (last["group"], last["groups"]) == (sums.OTHERS, 10)
    assert last["kept"]["rows"] == sum(range(1, 11))
    assert last["dropped"] == {"rows": 1, "bytes": 10, "tokens": 2}
    assert last["quarantined"]["rows"] == 1
    kept = sum(row["kept"]["rows"] for row in rows)
    assert kept == sum(range(1, 41))


def test_histograms_of_small_sources_are_added_up() -> None:
    sources = {
        f"s{n:02}": [merged(tally("", verdict="kept", rows=100 - n), counts={"7": n + 1})]
        for n in range(sums.MAX_HISTOGRAMS + 3)
    }
    histograms = sums.figures([], sources, quality=QualityRules.parse(["none"]))["histograms"]
    assert list(histograms) == [*list(sources)[: sums.MAX_HISTOGRAMS], sums.OTHERS]
    assert histograms["s03"] == {"bytes": {"kept": {"7": 4}}}
    assert histograms[sums.OTHERS] == {"bytes": {"kept": {"7": 13 + 14 + 15}}}
