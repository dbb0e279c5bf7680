from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipelines.map import builder
from pipelines.map.builder import SegmentBuilder
from pipelines.readers.record import WHOLE_BYTES
from pipelines.segments.audit import AUDIT, Tally, audit_schema
from pipelines.segments.rows import READ
from pipelines.segments.segment import NUM_BINS, REJECT, with_suffix
from shards.tables import open_table
from tests.pipelines.made_segments import Doc, judged, random_docs, segment_builder, write_segment

BIN = 2**64 // NUM_BINS
SUFFIXES = ("tokens", "documents", "bins", "holdout", "hashes", "audit", "examples")


def tokens_of(stem: Path) -> list[int]:
    found: list[int] = np.fromfile(with_suffix(stem, "tokens"), "<u2").tolist()
    return found


def rows(stem: Path, suffix: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = open_table(with_suffix(stem, suffix)).to_pylist()
    return found


def test_documents_and_tokens_stand_in_the_order_of_the_hash(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    docs = random_docs(rng, 300)
    segments = segment_builder(relative="a/part-1.json")
    for part in (docs[:120], docs[120:], []):  # batches; one with nothing in it
        kept, dropped = judged(part)
        segments.add(kept, [dropped])
    segment = segments.close(tmp_path / "s")
    ranked = sorted(docs, key=lambda doc: doc.order)
    table = open_table(tmp_path / "s.documents")
    assert table["order"].to_pylist() == [doc.order for doc in ranked]
    assert table["id"].to_pylist() == [f"id{doc.position}" for doc in ranked]
    assert table["tokens"].to_pylist() == [len(doc.tokens) for doc in ranked]
    assert set(table["path"].to_pylist()) == {"a/part-1.json"}
    assert tokens_of(tmp_path / "s") == [token for doc in ranked for token in doc.tokens]
    assert (segment.stem, segment.documents) == ("s", 300)
    assert segment.tokens == sum(len(doc.tokens) for doc in docs)
    assert segment.longest == max(len(doc.tokens) for doc in docs)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"s.{x}" for x in SUFFIXES)


def test_documents_hold_what_a_shard_needs_and_no_more(tmp_path: Path) -> None:
    write_segment(tmp_path / "s", [Doc(order=1)])
    assert open_table(tmp_path / "s.documents").column_names == [
        *("position", "ordinal", "order", "holdout", "bytes", "id"),
        *("repaired", "language", "score", "tokens", "prompt_tokens", "path"),
    ]


def test_bins_count_what_lies_before_them(tmp_path: Path) -> None:
    edges = [0, BIN - 1, BIN, 3 * BIN, 3 * BIN + 5, 2**63, 2**64 - 1]
    docs = [Doc(order=order, tokens=range(at + 1)) for at, order in enumerate(edges)]
    docs += random_docs(np.random.default_rng(2), 200)
    write_segment(tmp_path / "s", docs)
    bins = open_table(tmp_path / "s.bins")
    assert bins.num_rows == NUM_BINS + 1
    orders = np.sort(np.array([doc.order for doc in docs], np.uint64))
    at = (orders // np.uint64(BIN)).astype(np.int64)
    assert np.diff(bins["documents"].to_numpy()).tolist() == (
        np.bincount(at, minlength=NUM_BINS).tolist()
    )
    sizes = np.zeros(NUM_BINS, np.int64)
    for doc in docs:
        sizes[doc.order // BIN] += len(doc.tokens)
    assert bins["tokens"].to_pylist() == [0, *np.cumsum(sizes).tolist()]


def test_holdout_is_an_index_sorted_by_hash(tmp_path: Path) -> None:
    docs = random_docs(np.random.default_rng(3), 100)
    write_segment(tmp_path / "s", docs)
    index = open_table(tmp_path / "s.holdout")
    held = open_table(tmp_path / "s.documents")["holdout"].to_numpy()
    assert index["holdout"].to_pylist() == sorted(doc.holdout for doc in docs)
    assert held[index["row"].to_numpy()].tolist() == index["holdout"].to_pylist()
    assert sorted(index["row"].to_pylist()) == list(range(100))


def test_of_equal_texts_the_smallest_order_leaves_the_segment(tmp_path: Path) -> None:
    one, other = (5 << 64) + 7, (5 << 64) + 8  # the high halves agree
    docs = [
        Doc(order=30, hash=one, position=0, tokens=[30]),
        Doc(order=10, hash=one, position=1, tokens=[10]),
        Doc(order=20, hash=other, position=2, tokens=[20]),
        Doc(order=40, hash=one, position=3, tokens=[40]),
        Doc(order=5, position=4, tokens=[5]),
    ]
    segment = write_segment(tmp_path / "s", docs)
    assert tokens_of(tmp_path / "s") == [5, 10, 20]
    audit = rows(tmp_path / "s", "audit")
    assert [row["order"] for row in audit] == [5, 10, 20, 30, 40]
    assert [row["reason"] for row in audit] == [None, None, None, "duplicate", "duplicate"]
    assert [row["verdict"] for row in audit] == ["kept"] * 3 + ["dropped"] * 2
    assert segment.tallies == (
        Tally(verdict="dropped", reason="duplicate", rows=2, bytes=203, tokens=2),
        Tally(verdict="kept", reason="", rows=3, bytes=307, tokens=3),
    )


def test_hashes_are_sorted_unique_and_name_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    docs = [
        Doc(order=order, hash=(high << 64) + low, position=at)
        for at, (order, high, low) in enumerate(
            zip(
                rng.permutation(400).tolist(),
                rng.integers(0, 5, 400).tolist(),
                rng.integers(1, 9, 400).tolist(),
                strict=True,
            )
        )
    ]
    write_segment(tmp_path / "s", docs)
    smallest: dict[int, int] = {}
    for doc in docs:
        smallest[doc.hash] = min(doc.order, smallest.get(doc.hash, doc.order))
    assert len(smallest) == 40
    table = open_table(tmp_path / "s.hashes")
    found = [
        ((high << 64) + low, order)
        for high, low, order in zip(
            *(table[name].to_pylist() for name in ("hash_high", "hash_low", "order")), strict=True
        )
    ]
    assert found == sorted(smallest.items())
    orders = open_table(tmp_path / "s.documents")["order"].to_numpy()
    assert orders[table["row"].to_numpy()].tolist() == table["order"].to_pylist()


def test_without_dedup_equal_texts_stay_and_no_hashes_are_written(tmp_path: Path) -> None:
    segment = write_segment(
        tmp_path / "s", [Doc(order=1, hash=9), Doc(order=2, hash=9)], dedup=False
    )
    assert segment.documents == 2
    assert not with_suffix(tmp_path / "s", "hashes").exists()


def test_everything_read_has_an_audit_row(tmp_path: Path) -> None:
    docs = [
        Doc(order=4, position=0, reason="too-short"),
        Doc(order=3, position=1, reason="bad-json"),
        Doc(order=2, position=2),
        Doc(order=1, position=3, ordinal=1),
        Doc(order=6, position=4, reason="too-short"),
    ]
    segment = write_segment(tmp_path / "s", docs, relative="x.json")
    table = open_table(tmp_path / "s.audit")
    assert table.schema == AUDIT
    assert table["order"].to_pylist() == [1, 2, 3, 4, 6]
    assert table["position"].to_pylist() == [3, 2, 1, 0, 4]
    assert table["verdict"].to_pylist() == ["kept", "kept", "quarantined", "dropped", "dropped"]
    assert set(table["path"].to_pylist()) == {"x.json"}
    assert segment.fanned_out == 1
    assert segment.tallies == (
        Tally(verdict="dropped", reason="too-short", rows=2, bytes=204, tokens=4),
        Tally(verdict="kept", reason="", rows=2, bytes=205, tokens=4),
        Tally(verdict="quarantined", reason="bad-json", rows=1, bytes=101),
    )


def test_columns_that_a_record_did_not_reach_are_null(tmp_path: Path) -> None:
    kept, _ = judged([Doc(order=1, tokens=[7, 8, 9])])
    _, early = judged([Doc(order=2, reason="empty")])
    unread = early.batch.select(READ.names)
    segments = segment_builder()
    segments.add(kept, [type(early)(unread, early.reasons)])
    segments.close(tmp_path / "s")
    one, two = rows(tmp_path / "s", "audit")
    assert (one["language"], one["repaired"], one["tokens"]) == ("zh", False, 3)
    assert (two["language"], two["repaired"], two["tokens"], two["score"]) == (None,) * 4


def test_rejects_keep_the_place_and_the_first_bytes(tmp_path: Path) -> None:
    segments = segment_builder(relative="x.json")
    docs = [Doc(order=9, position=5, reason="bad-json"), Doc(order=3, position=8, reason="nul")]
    kept, dropped = judged(docs)
    segments.add(kept, [dropped])
    for doc in docs:
        place = {"order": doc.order, "position": doc.position, "length": 99_999, "more": "unused"}
        segments.reject(place, reason=str(doc.reason), raw=b"\xff" * (2 << 20))
    segment = segments.close(tmp_path / "s")
    assert segment.rejects == 2
    table = open_table(tmp_path / "s.rejects")
    assert table.schema == REJECT
    assert table["order"].to_pylist() == [3, 9]
    assert table["reason"].to_pylist() == ["nul", "bad-json"]
    assert table["length"].to_pylist() == [99_999] * 2
    assert table["raw"].to_pylist() == [b"\xff" * WHOLE_BYTES] * 2


def test_a_segment_of_which_nothing_is_kept_is_like_any_other(tmp_path: Path) -> None:
    docs = [Doc(order=2, reason="empty"), Doc(order=1, reason="language")]
    segment = write_segment(tmp_path / "nothing", docs)
    write_segment(tmp_path / "something", [Doc(order=1)])
    assert (segment.documents, segment.tokens, segment.longest) == (0, 0, 0)
    assert sum(tally.rows for tally in segment.tallies) == 2
    assert tokens_of(tmp_path / "nothing") == []
    for suffix in SUFFIXES[1:]:
        tables = [open_table(tmp_path / f"{stem}.{suffix}") for stem in ("nothing", "something")]
        assert tables[0].schema == tables[1].schema
        assert tables[0].num_rows == {"bins": NUM_BINS + 1, "audit": 2, "examples": 2}.get(
            suffix, 0
        )
    bins = open_table(tmp_path / "nothing.bins")
    assert not bins["documents"].to_numpy().any()
    assert not bins["tokens"].to_numpy().any()


@pytest.mark.parametrize(("name", "limit"), [("MAX_RECORDS", 10), ("MAX_TOKENS", 20)])
def test_a_segment_is_full_after_so_many_records_or_tokens(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, limit: int
) -> None:
    monkeypatch.setattr(builder, name, limit)
    segments = segment_builder()
    assert segments.empty
    for at in range(9):  # dropped records count as well
        reason = "empty" if at % 2 and name == "MAX_RECORDS" else None
        kept, dropped = judged([Doc(order=at, reason=reason)])
        segments.add(kept, [dropped])
        assert not segments.full
    kept, dropped = judged([Doc(order=9)])
    segments.add(kept, [dropped])
    assert segments.full
    assert not segments.empty
    assert sum(tally.rows for tally in segments.close(tmp_path / "s").tallies) == 10
    assert segments.empty
    assert not segments.full


def test_the_next_segment_begins_with_nothing(tmp_path: Path) -> None:
    segments = segment_builder()
    for number in range(2):
        kept, dropped = judged([Doc(order=number, position=number, tokens=[number])])
        segments.add(kept, [dropped])
        place = {"order": number, "position": number, "length": 1}
        segments.reject(place, reason="nul", raw=b"")
        segment = segments.close(tmp_path / f"s{number}")
        assert (segment.documents, segment.rejects) == (1, 1)
        assert tokens_of(tmp_path / f"s{number}") == [number]
        assert [row["order"] for row in rows(tmp_path / f"s{number}", "audit")] == [number]


def test_the_same_documents_make_the_same_bytes_however_they_were_batched(tmp_path: Path) -> None:
    docs = random_docs(np.random.default_rng(6), 50)
    write_segment(tmp_path / "a" / "s", docs)
    segments = segment_builder()
    for doc in docs:
        kept, dropped = judged([doc])
        segments.add(kept, [dropped])
    segments.close(tmp_path / "b" / "s")
    for suffix in SUFFIXES:
        one, other = (tmp_path / folder / f"s.{suffix}" for folder in "ab")
        assert one.read_bytes() == other.read_bytes(), suffix


def test_texts_are_kept_beside_the_audit_rows_on_request(tmp_path: Path) -> None:
    docs = [Doc(order=5, position=1), Doc(order=2, position=2, reason="language")]
    segments = SegmentBuilder(relative="x", dedup=True, keep_texts=True)
    kept, dropped = judged(docs)
    segments.add(kept, [dropped])
    segments.close(tmp_path / "s")
    audit = open_table(tmp_path / "s.audit")
    assert audit["position"].to_pylist() == [2, 1]
    assert open_table(tmp_path / "s.texts")["text"].to_pylist() == ["text 2", "text 1"]
    assert "text" not in audit.column_names


def test_metrics_are_audited_and_no_part_of_documents(tmp_path: Path) -> None:
    schema = audit_schema([pa.field("gopher.words", pa.float32())])
    segments = SegmentBuilder(relative="x", dedup=True, schema=schema)
    kept, dropped = judged([Doc(order=5), Doc(order=2, reason="language")])
    kept = kept.append_column("gopher.words", pa.array([7.0], pa.float32()))
    segments.add(kept, [dropped])
    segments.close(tmp_path / "s")
    assert open_table(tmp_path / "s.audit")["gopher.words"].to_pylist() == [None, 7.0]
    assert "gopher.words" not in open_table(tmp_path / "s.documents").column_names


def test_groups_are_tallied_apart(tmp_path: Path) -> None:
    segments = segment_builder()
    kept, _ = judged([Doc(order=1), Doc(order=2), Doc(order=3)])
    at = kept.schema.get_field_index("group")
    groups = pa.array(["news", "books", "news"], pa.large_string())
    segments.add(kept.set_column(at, "group", groups), [])
    segment = segments.close(tmp_path / "s")
    assert [(tally.group, tally.rows) for tally in segment.tallies] == [("books", 1), ("news", 2)]
