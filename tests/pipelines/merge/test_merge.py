import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipelines.dedup.drops import DROPS, EXACT, NEAR, Drops
from pipelines.merge.merge import (
    find_held_out,
    merged_rows,
    take_range,
    take_rows,
)
from pipelines.segments.segment import NUM_BINS
from shards import range as ranges
from shards.merged import ShardSlice, write_merged_shard
from shards.range import EVERYTHING, Range, split_range
from shards.tables import write_table
from tests.pipelines.made_segments import (
    DTYPE,
    Doc,
    judged,
    random_docs,
    segment_builder,
    write_segment,
)

ALL = Range.of(0, 1)
NONE = np.zeros(0, np.uint32)
TOTALS = (1, 2, 3, 7, 64, 1000, NUM_BINS - 1, NUM_BINS, 3 * NUM_BINS + 1)


def texts(piece: ShardSlice) -> list[list[int]]:
    """The tokens of each document of a piece."""
    tokens = piece.tokens.view(DTYPE)
    lengths = piece.documents["tokens"].to_pylist()
    return [
        tokens[start : start + length].tolist()
        for start, length in zip(piece.starts.tolist(), lengths, strict=True)
    ]


def ranked(docs: list[Doc]) -> list[Doc]:
    return sorted(docs, key=lambda doc: doc.order)


@pytest.fixture(scope="module")
def docs() -> list[Doc]:
    """300 documents, among them the first and the last of some bins and shards."""
    found = random_docs(np.random.default_rng(11), 270)
    edges = {
        order % 2**64
        for total in (3, 7, NUM_BINS)
        for index in (0, 1, 2, total - 1)
        for order in (Range.of(index, total).low, Range.of(index, total).high - 1)
    }
    return found + [
        Doc(order=order, tokens=[at], holdout=at) for at, order in enumerate(sorted(edges))
    ]


@pytest.fixture(scope="module")
def stem(docs: list[Doc], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("segment") / "s"
    write_segment(path, docs, dedup=False)
    return path


@pytest.mark.parametrize("total", TOTALS)
def test_take_range_is_a_filter_of_the_segment(docs: list[Doc], stem: Path, total: int) -> None:
    used = {(doc.order * total) >> 64 for doc in docs} | {0, total - 1, total // 2}
    seen = 0
    for index in sorted(used):
        piece = take_range(stem, Range.of(index, total), dropped=NONE, holdout=0)
        wanted = [doc for doc in ranked(docs) if (doc.order * total) >> 64 == index]
        assert piece.documents["order"].to_pylist() == [doc.order for doc in wanted]
        assert texts(piece) == [list(doc.tokens) for doc in wanted]
        seen += len(wanted)
    assert seen == len(docs)


@pytest.mark.parametrize("total", [1, 3, 64])
@pytest.mark.parametrize("holdout", [0, 1, 2, 3, 2**62, 2**63 + 1])
def test_take_range_leaves_out_what_is_dropped_or_held_out(
    docs: list[Doc], stem: Path, total: int, holdout: int
) -> None:
    in_order = ranked(docs)
    dropped = np.arange(1, len(docs), 5, dtype=np.uint32)
    dropped_rows = set(dropped.tolist())
    taken = []
    for index in range(total):
        piece = take_range(stem, Range.of(index, total), dropped=dropped, holdout=holdout)
        taken += texts(piece)
    wanted = [
        list(doc.tokens)
        for row, doc in enumerate(in_order)
        if row not in dropped_rows and doc.holdout >= holdout
    ]
    assert taken == wanted
    assert 0 < len(wanted) < len(docs)


@pytest.mark.parametrize("holdout", [0, 1, 2**62, 2**64 - 1])
def test_held_out_are_the_rows_below_the_threshold(
    docs: list[Doc], stem: Path, holdout: int
) -> None:
    rows = find_held_out({3: stem}, holdout, EVERYTHING, drops=[])[3].rows
    wanted = [row for row, doc in enumerate(ranked(docs)) if doc.holdout < holdout]
    assert rows.tolist() == wanted
    assert texts(take_rows(stem, rows)) == [list(ranked(docs)[row].tokens) for row in wanted]


def drops(*rows: tuple[int, ...]) -> pa.Table:
    """Drops of (order, segment, row), for being equal, or with a reason."""
    full = sorted((*(*row, 0)[:4], 1) for row in rows)
    return pa.table(list(map(list, zip(*full, strict=True))), schema=DROPS)


def shard_of(tmp_path: Path, pieces: list[ShardSlice]) -> tuple[pa.Table, list[int]]:
    stem = tmp_path / "out" / "00000"
    entry = write_merged_shard(stem, pieces, directory=tmp_path, dtype=np.dtype("<u2"))
    table = pa.ipc.open_file(stem.with_suffix(".arrow")).read_all()
    tokens = np.fromfile(stem.with_suffix(".bin"), "<u2").tolist()
    assert (entry.documents, entry.tokens) == (len(table), len(tokens))
    return table, tokens


def test_a_shard_is_all_pieces_by_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    parts = [random_docs(rng, num) for num in (40, 1, 70)]
    pieces = []
    for at, part in enumerate(parts):
        write_segment(tmp_path / f"s{at}", part, relative=f"part-{at}.json")
        pieces.append(take_range(tmp_path / f"s{at}", ALL, dropped=NONE, holdout=0))
    table, tokens = shard_of(tmp_path, pieces)
    both = [(doc, f"part-{at}.json") for at, part in enumerate(parts) for doc in part]
    both.sort(key=lambda pair: pair[0].order)
    assert table["order"].to_pylist() == [doc.order for doc, _ in both]
    assert table["path"].to_pylist() == [path for _, path in both]
    assert tokens == [token for doc, _ in both for token in doc.tokens]
    assert set(table["prompt_tokens"].to_pylist()) == {0}
    assert "holdout" not in table.column_names


def test_equal_orders_keep_the_order_of_identities(tmp_path: Path) -> None:
    pieces = []
    for at in range(3):
        same = [Doc(order=5, position=place, tokens=[at, place]) for place in range(30)]
        write_segment(tmp_path / f"s{at}", same, relative=f"part-{at}.json", dedup=False)
        pieces.append(take_range(tmp_path / f"s{at}", ALL, dropped=NONE, holdout=0))
    table, tokens = shard_of(tmp_path, pieces)
    assert tokens == [token for at in range(3) for place in range(30) for token in (at, place)]
    assert table["path"].to_pylist() == [f"part-{at}.json" for at in range(3) for _ in range(30)]


@pytest.mark.parametrize("at", [0, 1])
def test_a_segment_of_which_nothing_was_kept_costs_the_shard_nothing(
    tmp_path: Path, at: int
) -> None:
    write_segment(tmp_path / "s0", [Doc(order=5, tokens=[7])])
    write_segment(tmp_path / "s1", [Doc(order=6, reason="language")])
    pieces = [take_range(tmp_path / f"s{n}", ALL, dropped=NONE, holdout=0) for n in (at, 1 - at)]
    table, tokens = shard_of(tmp_path, pieces)
    assert (table["order"].to_pylist(), tokens) == ([5], [7])


def test_a_document_that_dedup_dropped_has_its_reason(tmp_path: Path) -> None:
    write_segment(tmp_path / "s0", [Doc(order=order, position=order) for order in (1, 2, 3)])
    write_segment(tmp_path / "s1", [Doc(order=order, position=order) for order in (4, 5, 6)])
    write_table(tmp_path / "d", drops((2, 0, 1, EXACT), (4, 1, 0, NEAR), (5, 1, 1, EXACT)))
    stems = {0: tmp_path / "s0", 1: tmp_path / "s1"}
    loaded = Drops.load([tmp_path / "d"], ALL)
    audit = merged_rows(stems, "audit", ALL, drops=loaded).to_pylist()
    assert [(row["order"], row["verdict"], row["reason"]) for row in audit] == [
        (1, "kept", None),
        (2, "dropped", "duplicate"),
        (3, "kept", None),
        (4, "dropped", "near-duplicate"),
        (5, "dropped", "duplicate"),
        (6, "kept", None),
    ]


def test_rejects_are_merged_from_the_segments_that_have_some(tmp_path: Path) -> None:
    for at, orders in enumerate([[4, 2**63], [], [1]]):
        segments = segment_builder(relative=f"part-{at}.json")
        rejected = [Doc(order=order, reason="nul") for order in orders]
        kept, dropped = judged([*rejected, Doc(order=9)])
        segments.add(kept, [dropped])
        for doc in rejected:
            place = {"order": doc.order, "position": 0, "length": 1}
            segments.reject(place, reason="nul", raw=b"\0")
        segments.close(tmp_path / f"s{at}")
    assert not (tmp_path / "s1.rejects").exists()
    stems = {at: tmp_path / f"s{at}" for at in (0, 2)}
    low, high = (merged_rows(stems, "rejects", Range.of(index, 2)) for index in (0, 1))
    assert low["order"].to_pylist() == [1, 4]
    assert low["path"].to_pylist() == ["part-2.json", "part-0.json"]
    assert high["order"].to_pylist() == [2**63]
    assert merged_rows({}, "rejects", ALL).num_rows == 0


def test_rows_are_merged_in_parts_of_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = random_docs(np.random.default_rng(5), 300)
    write_segment(tmp_path / "s", docs)
    whole = merged_rows({0: tmp_path / "s"}, "audit", ALL)
    assert split_range(ALL, rows=300, held_bytes=0) == [ALL]
    monkeypatch.setattr(ranges, "ROWS_AT_ONCE", 40)
    for within in (ALL, Range.of(1, 3)):
        parts = split_range(within, rows=300, held_bytes=0)
        assert (parts[0].low, parts[-1].high) == (within.low, within.high)
        assert all(one.high == two.low for one, two in itertools.pairwise(parts))
        tables = [merged_rows({0: tmp_path / "s"}, "audit", part) for part in parts]
        assert max(table.num_rows for table in tables) < 80
        expected = merged_rows({0: tmp_path / "s"}, "audit", within)
        assert pa.concat_tables(tables).combine_chunks().equals(expected.combine_chunks())
    assert len(split_range(ALL, rows=300, held_bytes=0)) == 8
    monkeypatch.setattr(ranges, "BYTES_AT_ONCE", 100)
    assert len(split_range(ALL, rows=300, held_bytes=1500)) == 15
    assert len(split_range(Range.of(1, 3), rows=300, held_bytes=3000)) == 10
    assert whole.num_rows == 300


def test_a_dropped_order_in_one_segment_says_nothing_of_another(tmp_path: Path) -> None:
    for at in range(2):
        write_segment(tmp_path / f"s{at}", [Doc(order=7, position=at)])
    write_table(tmp_path / "d", drops((7, 1, 0)))
    stems = {0: tmp_path / "s0", 1: tmp_path / "s1"}
    audit = merged_rows(stems, "audit", ALL, drops=Drops.load([tmp_path / "d"], ALL))
    assert audit["position"].to_pylist() == [0, 1]
    assert audit["verdict"].to_pylist() == ["kept", "dropped"]


def test_what_fell_before_dedup_keeps_its_own_reason(tmp_path: Path) -> None:
    write_segment(tmp_path / "s", [Doc(order=7), Doc(order=7, position=1, reason="language")])
    write_table(tmp_path / "d", drops((7, 0, 0)))
    audit = merged_rows({0: tmp_path / "s"}, "audit", ALL, drops=Drops.load([tmp_path / "d"], ALL))
    found = dict(zip(audit["position"].to_pylist(), audit["reason"].to_pylist(), strict=True))
    assert found == {0: "duplicate", 1: "language"}
