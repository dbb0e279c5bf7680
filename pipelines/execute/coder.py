"""How record batches travel where an engine hands them from one worker to another: as Arrow IPC."""

import pyarrow as pa

from pipelines.execute import beam


class RecordBatchCoder(beam.Coder):
    """Codes a batch as an Arrow IPC stream, schema first.

    The same batch always gives the same bytes. Batches that are equal may still differ in what
    is under their nulls, so that they are no keys.
    """

    def encode(self, value: pa.RecordBatch) -> bytes:
        """Return the stream."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_batch(value)
        encoded: bytes = sink.getvalue().to_pybytes()
        return encoded

    def decode(self, encoded: bytes) -> pa.RecordBatch:
        """Return the batch, whose columns are in the bytes that were given."""
        with pa.ipc.open_stream(encoded) as reader:
            return reader.read_next_batch()

    def estimate_size(self, value: pa.RecordBatch) -> int:
        """Estimate the size of a batch in bytes, which Beam shows for fused steps in its UI."""
        num_bytes: int = value.nbytes
        return num_bytes

    def to_type_hint(self) -> type:
        """Return the type that it codes."""
        batch: type = pa.RecordBatch
        return batch


beam.typecoders.registry.register_coder(pa.RecordBatch, RecordBatchCoder)
