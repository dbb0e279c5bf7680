import numpy as np
import pyarrow as pa

from pipelines.segments.examples import CHARACTERS, MOST_KEPT, PER_REASON, Examples


def rows(orders: np.ndarray, *, text: str = "text") -> pa.RecordBatch:
    num = len(orders)
    return pa.record_batch(
        {
            "order": pa.array(orders, pa.uint64()),
            "position": pa.array(range(num), pa.int64()),
            "ordinal": pa.array([0] * num, pa.int32()),
            "prompt": pa.array(["Q: "] * num, pa.large_string()),
            "text": pa.array([f"{text} {order}" for order in orders], pa.large_string()),
        }
    )


def reasons(*names: str | None) -> pa.Array:
    return pa.array(names, pa.string())


def test_examples_are_the_smallest_orders_however_they_came() -> None:
    orders = np.random.default_rng(1).integers(0, 2**64 - 1, 1000, np.uint64)
    for cuts in ((1000,), (1, 30, 1000), range(50, 1001, 50)):
        examples = Examples("part-1.json")
        start = 0
        for stop in cuts:
            part = rows(orders[start:stop])
            examples.add(part, reasons(*[None, "language"] * 500)[start:stop])
            start = stop
        table = examples.table()
        kept = table.filter(pa.compute.equal(table["reason"], ""))
        dropped = table.filter(pa.compute.equal(table["reason"], "language"))
        assert kept["order"].to_pylist() == sorted(orders[::2].tolist())[:MOST_KEPT]
        assert dropped["order"].to_pylist() == sorted(orders[1::2].tolist())[:PER_REASON]
        assert set(table["path"].to_pylist()) == {"part-1.json"}


def test_examples_begin_with_the_prompt_and_are_cut_to_whole_characters() -> None:
    examples = Examples("a")
    examples.add(rows(np.array([7]), text="字" * 2000), reasons("short"))
    (row,) = examples.table().to_pylist()
    assert row["text"] == "Q: " + "字" * (CHARACTERS - 3)


def test_the_next_segment_begins_without_examples() -> None:
    examples = Examples("a")
    examples.add(rows(np.array([7])), reasons(None))
    assert examples.table().num_rows == 1
    assert examples.table().num_rows == 0
