"""Batches as the steps get them."""

import pyarrow as pa

from pipelines.segments.rows import READ

CHINESE = "清晨的集市上，卖豆腐的老人把担子放下，慢慢地吆喝起来，邻居们提着篮子围了过来。"
ENGLISH = "The old bridge over the river was closed for repairs during the whole summer."


def batch(*texts: str) -> pa.RecordBatch:
    """Return a batch of READ with these texts."""
    num = len(texts)
    columns = [
        pa.array([100 * row for row in range(num)], pa.int64()),
        pa.array([50] * num, pa.int64()),
        pa.array([0] * num, pa.int32()),
        pa.array(range(num), pa.uint64()),
        pa.array(range(num), pa.uint64()),
        pa.array([len(text.encode()) for text in texts], pa.int64()),
        pa.array([""] * num, pa.large_string()),
        pa.array([""] * num, pa.large_string()),
        pa.array(texts, pa.large_string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=READ)
