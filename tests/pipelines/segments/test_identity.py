import numpy as np

from pipelines.segments.identity import holdout_hashes, order_hashes, sample_hashes

POSITIONS = np.array([0, 1, 17, 1 << 40], np.int64)
GOLDEN = {
    "order": [0x5FD219D79072714D, 0xF728750BF7F1E901, 0x361F7260466EC856, 0xDB579062241DDD30],
    "sample": [0xF7338A8AD917E557, 0x2C073E9E4401DA50, 0x0392B40327286A9B, 0x57E5281AD1239B0F],
    "holdout": [0x9044D1E509AE874B, 0xC9F922AB33AFE776, 0x37DECBEDA7208BEF, 0xBEF628AC6A01D1E9],
}


def order(
    source: str, relative: str, positions: np.ndarray, *, seed: int, ordinal: int = 0
) -> np.ndarray:
    ordinals = np.full(len(positions), ordinal, np.int32)
    return order_hashes(source, relative, positions=positions, ordinals=ordinals, seed=seed)


HASHES = {"order": order, "sample": sample_hashes, "holdout": holdout_hashes}


def test_hashes_are_pinned_for_ever() -> None:
    for name, hashes in HASHES.items():
        found = hashes("wudao", "part-1.json", POSITIONS, seed=0)
        assert found.dtype == np.uint64
        assert [hex(value) for value in found.tolist()] == [hex(value) for value in GOLDEN[name]]


def test_order_of_a_second_document_is_pinned() -> None:
    found = order("wudao", "part-1.json", POSITIONS[1:2], seed=0, ordinal=1)
    assert found.tolist() == [0x3F8739404BC9E922]
