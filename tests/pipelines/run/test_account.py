import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipelines.dedup.tasks import TaskRecord
from pipelines.engine.figures import progress_counts
from pipelines.map.mapper import SplitRecord
from pipelines.merge.tasks import MergeRecord
from pipelines.run import account
from pipelines.segments.audit import Tally
from pipelines.segments.segment import Segment
from shards.errors import DamageError
from shards.manifest import Manifest, ShardEntry, SourceEntry
from shards.records import to_json

KEPT = Tally(verdict="kept", reason="", rows=70, bytes=7000)
SHORT = Tally(verdict="dropped", reason="too-short", rows=20, bytes=200)
TWICE = Tally(verdict="dropped", reason="duplicate", rows=4, bytes=400)
BAD = Tally(verdict="quarantined", reason="bad-json", rows=6, bytes=0)


def split(source: str, *tallies: Tally, unsampled: int = 0) -> SplitRecord:
    kept = sum(each.rows for each in tallies if each.verdict == "kept")
    segment = Segment(
        stem="s",
        documents=kept,
        tokens=9,
        longest=9,
        rejects=0,
        fanned_out=2,
        tallies=tallies,
        files={},
    )
    return SplitRecord(
        source=source,
        relative="a.json",
        start=0,
        end=9,
        file_bytes=9,
        mtime_ns=1,
        etag="",
        crc32c=1,
        first=0,
        next=9,
        unsampled=unsampled,
        seconds=1.0,
        cpu_seconds={},
        versions={},
        segments=(segment,),
    )


def shard(documents: int, tokens: int = 5) -> ShardEntry:
    return ShardEntry(path="g/s/00000", documents=documents, tokens=tokens, files={})


def merged(
    *tallies: Tally, shards: Sequence[int] = (), validation: Sequence[int] = ()
) -> MergeRecord:
    return MergeRecord(
        shards=tuple(map(shard, shards)),
        validation=tuple(map(shard, validation)),
        audit=(),
        rejects=(),
        dropped_texts=(),
        tallies=tallies,
        histograms={},
    )


def rows(tally: Tally, number: int, size: int | None = None) -> Tally:
    return dataclasses.replace(tally, rows=number, bytes=tally.bytes if size is None else size)


RECORDS = [split("a", SHORT, TWICE, KEPT, BAD, unsampled=3), split("b", KEPT), split("b", SHORT)]
NOTHING = {"duplicate": 0, "near-duplicate": 0}
DEDUP = [
    TaskRecord(dropped={"a": {**NOTHING, "duplicate": 10}, "b": NOTHING}, known={}),
    TaskRecord(dropped={"a": NOTHING, "b": {**NOTHING, "duplicate": 1}}, known={}),
]
MERGED = {
    "a": [
        merged(rows(KEPT, 30, 3000), SHORT, BAD, shards=[28]),
        merged(rows(KEPT, 30, 3000), rows(TWICE, 14, 1400), shards=[29]),
        merged(validation=[3]),
    ],
    "b": [merged(rows(KEPT, 69, 6900), SHORT, rows(TWICE, 1, 100), shards=[69])],
}


def test_both_accounts_agree() -> None:
    expected = account.expected_account(RECORDS, DEDUP)
    assert expected == {
        ("a", "kept", ""): 60,
        ("a", "dropped", "too-short"): 20,
        ("a", "dropped", "duplicate"): 14,
        ("a", "quarantined", "bad-json"): 6,
        ("b", "kept", ""): 69,
        ("b", "dropped", "too-short"): 20,
        ("b", "dropped", "duplicate"): 1,
    }
    assert account.final_account(MERGED) == expected
    account.check_account(RECORDS, DEDUP, MERGED)


def test_drops_are_progress() -> None:
    record = TaskRecord(dropped={"a": {"duplicate": 3, "near-duplicate": 20}}, known={})
    assert progress_counts("drops", to_json(record)) == {"documents dropped": 23}


def replaced(source: str, at: int, record: MergeRecord) -> dict[str, list[MergeRecord]]:
    changed = {name: list(found) for name, found in MERGED.items()}
    changed[source][at] = record
    return changed


@pytest.mark.parametrize(
    ("records", "dedup", "final", "message"),
    [
        (RECORDS[:2], DEDUP, MERGED, "b dropped too-short: 0 by .* records, 20 in the result"),
        (RECORDS, DEDUP[:1], MERGED, "b dropped duplicate: 0 by .* records, 1 in the result"),
        (
            RECORDS,
            DEDUP,
            replaced("a", 0, merged(rows(KEPT, 29, 3000), SHORT, BAD, shards=[28])),
            "a kept : 60 by the segments' records, 59 in the result",
        ),
        (
            RECORDS,
            DEDUP,
            replaced("a", 0, merged(rows(KEPT, 30, 2999), SHORT, BAD, shards=[28])),
            "bytes: 14,800 by the segments' records, 14,799 in the result",
        ),
        (
            RECORDS,
            DEDUP,
            replaced("a", 2, merged(validation=[2])),
            "a documents: 60 by the segments' records, 59 in the result",
        ),
        (
            RECORDS,
            DEDUP,
            replaced("b", 0, merged(*MERGED["b"][0].tallies, shards=[70])),
            "b documents: 69 by the segments' records, 70 in the result",
        ),
        (
            RECORDS,
            DEDUP,
            replaced("b", 0, merged(rows(KEPT, 69, 6900), TWICE, shards=[69])),
            "b dropped ",
        ),
        (
            [split("c", KEPT), split("d", SHORT)],
            [],
            {"c": [merged(SHORT)], "d": [merged(KEPT, shards=[70])]},
            "c dropped too-short: 0 by .* records, 20 in",
        ),
    ],
)
def test_a_run_that_does_not_balance_fails(
    records: list[SplitRecord],
    dedup: list[TaskRecord],
    final: dict[str, list[MergeRecord]],
    message: str,
) -> None:
    with pytest.raises(DamageError, match=f"the account does not balance: {message}") as raised:
        account.check_account(records, dedup, final)
    assert "delete that folder and run the same command again" in str(raised.value)


def accounted() -> dict[str, Any]:
    return account.accounting(account.final_account(MERGED), RECORDS, MERGED)


def test_the_account_has_every_figure_by_source() -> None:
    assert accounted() == {
        "a": {
            "read": 100,
            "kept": 60,
            "dropped": {"duplicate": 14, "too-short": 20},
            "quarantined": {"bad-json": 6},
            "fanned_out": 2,
            "not_sampled": 3,
            "bytes": {"kept": 6000, "dropped": 1600, "quarantined": 0},
            "groups": {},
        },
        "b": {
            "read": 90,
            "kept": 69,
            "dropped": {"duplicate": 1, "too-short": 20},
            "quarantined": {},
            "fanned_out": 4,
            "not_sampled": 0,
            "bytes": {"kept": 6900, "dropped": 300, "quarantined": 0},
            "groups": {},
        },
    }


def test_read_is_the_sum_of_what_became_of_it() -> None:
    for figures in accounted().values():
        parts = (*figures["dropped"].values(), *figures["quarantined"].values())
        assert figures["read"] == figures["kept"] + sum(parts)


def test_the_rate_of_rejects_is_over_everything_read() -> None:
    rate, reasons = account.reject_rate(RECORDS)
    assert rate == 6 / 190
    assert reasons == {"bad-json": 6}
    assert account.reject_rate([]) == (0.0, {})


def test_a_source_is_unread_if_all_of_its_records_are_quarantined() -> None:
    records = [split("a", BAD), split("b", BAD, KEPT), split("c"), split("d", SHORT)]
    assert account.unread_sources(records) == {"a"}
    assert account.unread_sources([*records, split("a", SHORT)]) == set()


def test_the_end_of_a_run_tells_figures_reasons_and_what_to_do_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = SourceEntry(shards=(shard(28, 1000), shard(29, 1234)), validation=(shard(3, 50),))
    found = {"train": entry.shards, "validation": entry.validation}
    monkeypatch.setattr(Manifest, "shards", lambda _, split: found[split])
    made = Manifest.__new__(Manifest)
    assert account.closing_lines(accounted(), made, Path("out")) == [
        "a: 100 read = 60 kept + 34 dropped + 6 quarantined",
        "            14  dropped: duplicate",
        "            20  dropped: too-short",
        "             6  quarantined: bad-json",
        "             3  not in the sample",
        "b: 90 read = 69 kept + 21 dropped + 0 quarantined",
        "             1  dropped: duplicate",
        "            20  dropped: too-short",
        "train: 57 documents, 2,234 tokens, shards: 2",
        "validation: 3 documents, 50 tokens, shards: 1",
        "dataset in out; look at it: python -m shards inspect out --doc 0",
        "report in out/report.html",
    ]


def test_a_finished_record_says_what_it_adds_to_the_line() -> None:
    counts = {"documents": 100, "kept": 70, "dropped": 30}
    assert progress_counts("map", to_json(RECORDS[0])) == counts
    assert progress_counts("drops", to_json(DEDUP[0])) == {"documents dropped": 10}
    assert progress_counts("merge", to_json(MERGED["b"][0])) == {}
