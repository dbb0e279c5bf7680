from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipelines.merge.slices import take_range
from pipelines.segments.segment import NUM_BINS
from shards.merged import ShardSlice, write_merged_shard
from shards.range import Range
from tests.pipelines.made_segments import DTYPE, Doc, random_docs, write_segment

NONE = np.zeros(0, np.uint32)
TOTALS = (1, 3, 64, NUM_BINS, 3 * NUM_BINS + 1)


def texts(piece: ShardSlice) -> list[list[int]]:
    """The tokens of each document of a piece."""
    tokens = piece.tokens.view(DTYPE)
    lengths = piece.documents["tokens"].to_pylist()
    return [
        tokens[start : start + length].tolist()
        for start, length in zip(piece.starts.tolist(), lengths, strict=True)
    ]


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


@pytest.mark.parametrize(("every", "holdout"), [(0, 0), (5, 3), (7, 2**62)])
@pytest.mark.parametrize("total", TOTALS)
def test_take_range_is_a_filter_of_the_segment(
    docs: list[Doc], stem: Path, total: int, every: int, holdout: int
) -> None:
    in_order = sorted(docs, key=lambda doc: doc.order)
    dropped = np.arange(len(docs))[::every].astype(np.uint32) if every else NONE
    gone = {*dropped.tolist()}
    left = [doc for row, doc in enumerate(in_order) if row not in gone and doc.holdout >= holdout]
    used = {(doc.order * total) >> 64 for doc in docs} | {0, total - 1, total // 2}
    seen = 0
    for index in sorted(used):
        piece = take_range(stem, Range.of(index, total), dropped=dropped, holdout=holdout)
        wanted = [doc for doc in left if (doc.order * total) >> 64 == index]
        assert piece.documents["order"].to_pylist() == [doc.order for doc in wanted]
        assert texts(piece) == [list(doc.tokens) for doc in wanted]
        seen += len(wanted)
    assert seen == len(left)


def test_equal_orders_keep_the_order_of_identities(tmp_path: Path) -> None:
    pieces = []
    for at in range(3):
        same = [Doc(order=5, position=place, tokens=[at, place]) for place in range(30)]
        write_segment(tmp_path / f"s{at}", same, relative=f"part-{at}.json", dedup=False)
        pieces.append(take_range(tmp_path / f"s{at}", Range.of(0, 1), dropped=NONE, holdout=0))
    stem = tmp_path / "out" / "00000"
    write_merged_shard(stem, pieces, directory=tmp_path, dtype=np.dtype("<u2"))
    table = pa.ipc.open_file(stem.with_suffix(".arrow")).read_all()
    tokens = np.fromfile(stem.with_suffix(".bin"), "<u2").tolist()
    assert tokens == [token for at in range(3) for place in range(30) for token in (at, place)]
    assert table["path"].to_pylist() == [f"part-{at}.json" for at in range(3) for _ in range(30)]
