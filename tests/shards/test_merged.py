import numpy as np
import pyarrow as pa

from shards.merged import gather


def test_gather_takes_documents_from_everywhere_in_chunks() -> None:
    tokens = [np.arange(0, 100, dtype=np.uint16), np.arange(1000, 1100, dtype=np.uint16)]
    rng = np.random.default_rng(7)
    owners = rng.integers(0, 2, 3_000)
    starts, lengths = rng.integers(0, 90, 3_000), rng.integers(0, 10, 3_000)
    chunks = list(gather(tokens, owners, starts=starts, lengths=lengths))
    assert len(chunks) == 3
    wanted = [
        token
        for owner, start, length in zip(owners, starts, lengths, strict=True)
        for token in range(1000 * owner + start, 1000 * owner + start + length)
    ]
    assert np.concatenate(chunks).tolist() == wanted
    assert list(gather(tokens, owners[:0], starts=starts[:0], lengths=lengths[:0])) == []
    assert pa.from_numpy_dtype(chunks[0].dtype) == pa.uint16()
