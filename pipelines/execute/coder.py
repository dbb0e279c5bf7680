"""Encodes record batches as Arrow IPC, for engines that send them from worker to worker."""

import pyarrow as pa

from pipelines.execute import beam


class RecordBatchCoder(beam.Coder):
    """Encodes a batch as an Arrow IPC stream, which begins with the schema.

    The same batch always gives the same bytes. Equal batches may still differ in the bytes under
    their nulls, so batches cannot be keys.
    """

    def encode(self, value: pa.RecordBatch) -> bytes:
        """Return the batch as a stream."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_batch(value)
        encoded: bytes = sink.getvalue().to_pybytes()
        return encoded

    def decode(self, encoded: bytes) -> pa.RecordBatch:
        """Return the batch of a stream; the batch's columns point into `encoded`."""
        with pa.ipc.open_stream(encoded) as reader:
            return reader.read_next_batch()

    def estimate_size(self, value: pa.RecordBatch) -> int:
        """Estimate the size of a batch in bytes, which Beam shows for fused steps in its UI."""
        num_bytes: int = value.nbytes
        return num_bytes

    def to_type_hint(self) -> type:
        """Return the type that the coder encodes."""
        batch: type = pa.RecordBatch
        return batch


beam.typecoders.registry.register_coder(pa.RecordBatch, RecordBatchCoder)
