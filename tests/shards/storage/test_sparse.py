import itertools
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.errors import DamageError
from shards.range import Range
from shards.storage.files import atomic_write, file_size
from shards.storage.remote import AnyPath, RemotePath
from shards.storage.sparse import join_ranges
from shards.tables import (
    column,
    lookup,
    map_items,
    open_between,
    open_rows,
    open_table,
    rows_between,
    with_hash_range,
    write_table,
)

NUM = 40_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """A table with every kind of column that segments have, with rows sorted by a hash."""
    rng = np.random.default_rng(1)
    keys = np.sort(rng.integers(0, 2**64, NUM, np.uint64))
    words = ["一", "two", "", "four" * 9]
    texts = [words[at] * int(at) for at in rng.integers(0, 4, NUM)]
    return pa.table(
        {
            "order": keys,
            "tokens": rng.integers(0, 99, NUM).astype(np.int32),
            "flag": pa.array(rng.integers(0, 2, NUM).astype(bool)),
            "text": pa.array(texts, pa.large_string()),
            "short": pa.array(texts, pa.string()),
            "raw": pa.array([text.encode() for text in texts], pa.large_binary()),
            "score": pa.array([None if at % 7 else at / 3 for at in range(NUM)], pa.float32()),
            "path": pa.array([f"part-{at % 3}" for at in range(NUM)]).dictionary_encode(),
            "signature": pa.array([bytes([at % 251] * 5) for at in range(NUM)], pa.binary(5)),
        }
    )


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of bytes of each request so far."""
    sizes: list[int] = []
    whole = RemotePath.read_ranges

    def read_ranges(self: RemotePath, ranges: list[tuple[int, int]]) -> list[bytes]:
        sizes.append(sum(stop - start for start, stop in ranges))
        return whole(self, ranges)

    monkeypatch.setattr(RemotePath, "read_ranges", read_ranges)
    return sizes


TABLES = {
    "every kind of column": lambda table: table,
    "no rows": lambda table: table[:0],
    "uneven keys": lambda _: pa.table(
        {"order": np.sort(np.append(np.zeros(50_000, "u8"), np.arange(9, dtype="u8") << 61))}
    ),
    # The descriptions of columns and a dictionary are larger than the part that is fetched first.
    "many columns": lambda table: (
        table[:200]
        .select(["order"] * 300)
        .rename_columns(["order", *(f"column {at} {'x' * 400}" for at in range(299))])
    ),
    "a long dictionary": lambda table: table.select(["order"]).append_column(
        "path", pa.array([f"{at:09}" for at in range(NUM, 0, -1)]).dictionary_encode()
    ),
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_rows_are_found_by_their_place_and_by_their_hash(
    either: AnyPath, table: pa.Table, make: Callable[[pa.Table], pa.Table]
) -> None:
    made = make(table)
    write_table(either / "t", made)
    assert open_table(either / "t").equals(made)
    size, keys = made.num_rows, column(made, "order").astype(object)
    rng = np.random.default_rng(2)
    ends = [(0, 0), (0, size), (size, size), *rng.integers(0, size + 1, (5, 2)).tolist()]
    for first, last in map(sorted, ends):
        found = open_rows(either / "t", slice(first, last))
        assert found.to_pydict() == made.slice(first, last - first).to_pydict()
    bounds = [(0, 1), (1, 2**64), (2**64, 2**64), (1 << 61, (1 << 61) + 1), (2**63, 2**63)]
    for low, high in map(sorted, (*bounds, *rng.integers(0, 2**64, (5, 2), np.uint64).tolist())):
        first, last = (int((keys < bound).sum()) for bound in (low, high))
        assert rows_between(either / "t", "order", low=low, high=high) == slice(first, last)
        found = open_between(either / "t", "order", low=low, high=high)
        assert found.to_pydict() == made.slice(first, last - first).to_pydict()


@pytest.mark.parametrize("bound", [0, 5 << 61, (5 << 61) + (1 << 60), 3 << 62, 2**64])
def test_a_table_may_say_where_its_hashes_lie(
    remote: RemotePath, fetched: list[int], bound: int
) -> None:
    rng = np.random.default_rng(3)
    keys = np.sort(rng.integers(5 << 61, 3 << 62, NUM, np.uint64))
    table = pa.table({"order": keys, "value": np.arange(NUM), "other": np.arange(NUM)})
    within = Range(low=5 << 61, high=3 << 62)
    write_table(remote / f"spread-{bound}", with_hash_range(table, within))
    high = min(bound + 2**50, 2**64)
    found = open_between(remote / f"spread-{bound}", "order", low=bound, high=high)
    assert found.schema.metadata is None
    assert found["order"].to_pylist() == [key for key in keys.tolist() if bound <= key < high]
    assert len(fetched) <= 3
    assert sum(fetched) < 24 * NUM / 2


def test_a_part_costs_a_part(remote: RemotePath, table: pa.Table, fetched: list[int]) -> None:
    path = remote / "t"
    write_table(path, table)
    found = open_between(path, "order", low=2**63, high=2**63 + 2**50)
    assert found.num_rows < 10
    assert sum(fetched) < path.size() / 4
    assert len(fetched) == 2
    assert open_rows(path, slice(20_000, 20_010)).get_total_buffer_size() < 4096
    assert open_between(path, "order", low=0, high=2**54).get_total_buffer_size() < 8192


def test_some_rows_are_looked_up(either: AnyPath, table: pa.Table, fetched: list[int]) -> None:
    write_table(either / "t", table)
    rows = np.array([39_000, 3, 20_000])
    found = lookup(either / "t", "order", column(table, "order")[rows])
    assert found.to_pydict() == table.take(rows).to_pydict()
    assert sum(fetched) < file_size(either / "t")


def test_runs_of_items_can_be_read(either: AnyPath) -> None:
    items = np.arange(300_000, dtype="<u2")
    with atomic_write(either / "tokens") as handle:
        handle.write(items)
    starts, lengths = np.array([299_990, 7, 100_000]), np.array([10, 0, 5])
    data = map_items(either / "tokens", starts=starts, lengths=lengths, size=len(items)).view("<u2")
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        part = slice(start, start + length)
        assert np.array_equal(data[part], items[part])


def test_what_is_no_table_is_damage(either: AnyPath) -> None:
    with atomic_write(either / "none") as handle:
        handle.write(bytes(300_000))
    with pytest.raises(DamageError, match=r"none is not an Arrow file"):
        open_rows(either / "none", slice(0, 1))
    with pytest.raises(DamageError, match=r"nowhere is missing"):
        open_rows(either / "nowhere", slice(0, 1))


PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=12)


@given(pairs=PAIRS, gap=st.integers(0, 5))
def test_joined_ranges_cover_the_same_and_lie_apart(pairs: list[tuple[int, int]], gap: int) -> None:
    ranges = np.array([[start, start + size] for start, size in pairs], np.int64).reshape(-1, 2)
    found = join_ranges(ranges, gap=gap).tolist()
    wanted = {at for start, stop in ranges.tolist() for at in range(start, stop)}
    covered = {at for start, stop in found for at in range(start, stop)}
    assert wanted <= covered
    assert all(two[0] > one[1] + gap for one, two in itertools.pairwise(found))
    edges = {edge for pair in ranges.tolist() for edge in pair}
    assert {edge for pair in found for edge in pair} <= edges
