"""How batches travel."""

import pyarrow as pa

from pipelines.engine import beam
from pipelines.segments.rows import NAME
from pipelines.transforms import RecordBatchCoder

BATCH = pa.record_batch(
    {
        "text": pa.array(["一", "two", ""], pa.large_string()),
        "language": pa.array(["zh", "en", "zh"], pa.large_string()).cast(NAME),
        "tokens": pa.array([[1, 2], [], [3]], pa.large_list(pa.uint16())),
        "score": pa.array([0.5, None, 1.0], pa.float32()),
    }
)


def test_a_batch_comes_back_as_it_was_also_a_part_of_one() -> None:
    coder = RecordBatchCoder()
    for batch in (BATCH, BATCH.slice(1, 1), BATCH.slice(0, 0)):
        decoded = coder.decode(coder.encode(batch))
        assert decoded.schema == batch.schema
        assert decoded.to_pylist() == batch.to_pylist()
        assert coder.encode(batch) == coder.encode(batch)


def test_it_is_the_coder_of_record_batches() -> None:
    coder = beam.typecoders.registry.get_coder(pa.RecordBatch)
    assert coder == RecordBatchCoder()
    assert not coder.is_deterministic()
    assert 0 < coder.estimate_size(BATCH) <= len(coder.encode(BATCH))
    assert coder.to_type_hint() is pa.RecordBatch
