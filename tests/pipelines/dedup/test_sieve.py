from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipelines.dedup.bands import open_bands, read_slots
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS, sign
from pipelines.dedup.sieve import SIGNATURE, pack_signatures
from shards.tables import open_table
from tests.pipelines.made_segments import Doc, judged, segment_builder, write_segment

ENGLISH = "The old bridge over the river was closed for repairs during the whole summer."


def signature(bands: list[int], slots: int) -> bytes:
    """Bands as numbered, all other ones of their own; `slots` of 112 differ from the first."""
    values = np.arange(NUM_BANDS, dtype=np.uint64) + np.uint64(1000 * (1 + sum(bands) + slots))
    for band in bands:
        values[band] = band
    return values.tobytes() + bytes(slots) + b"\1" * (NUM_SLOTS - slots)


def docs() -> list[Doc]:
    """By order: one; near to it; equal to it; unlike it, sharing a band; unsigned; a stranger."""
    docs = [
        Doc(order=10, hash=5, signature=signature([0, 1], 0)),
        Doc(order=20, hash=6, signature=signature([0, 2], 9)),
        Doc(order=30, hash=5, signature=signature([0, 1], 0)),
        Doc(order=40, hash=7, signature=signature([0, 2], 99)),
        Doc(order=50, hash=8),
        Doc(order=60, hash=9, signature=signature([], 50)),
    ]
    return [replace(doc, position=n, tokens=[doc.order]) for n, doc in enumerate(docs)]


def test_only_equal_texts_are_dropped_within_the_segment(tmp_path: Path) -> None:
    found = write_segment(tmp_path / "s", docs()[::-1])
    assert open_table(tmp_path / "s.documents")["order"].to_pylist() == [10, 20, 40, 50, 60]
    assert "signature" not in open_table(tmp_path / "s.documents").column_names
    tokens = np.fromfile(tmp_path / "s.tokens", "<u2")
    assert tokens.tolist() == [10, 20, 40, 50, 60]
    audit = open_table(tmp_path / "s.audit").to_pylist()
    assert [row["reason"] for row in audit] == [None, None, "duplicate", None, None, None]
    assert (found.documents, found.sieved.texts, found.sieved.signed) == (5, 5, 4)


def test_every_signer_is_handed_on_in_every_band(tmp_path: Path) -> None:
    write_segment(tmp_path / "s", docs())
    hashes = open_table(tmp_path / "s.hashes").to_pylist()
    assert [(row["hash_low"], row["order"], row["row"], row["copies"]) for row in hashes] == [
        *((5, 10, 0, 2), (6, 20, 1, 1), (7, 40, 2, 1), (8, 50, 3, 1), (9, 60, 4, 1))
    ]
    slots = tmp_path / "s.slots"
    assert read_slots(slots, "order").tolist() == [10, 20, 40, 60]
    assert read_slots(slots, "row").tolist() == [0, 1, 2, 4]
    assert read_slots(slots, "slots")[1].tolist() == [0] * 9 + [1] * 103
    for band, wanted in ((0, [0, 1, 2]), (2, [1, 2]), (1, [0])):
        rows = open_bands(tmp_path / "s.bands", band, first=0, last=1)
        assert rows.signer[rows.hash == band].tolist() == wanted
        everything = open_bands(tmp_path / "s.bands", band, first=0, last=1024)
        assert sorted(everything.signer.tolist()) == [0, 1, 2, 3]
        assert everything.order.tolist() == [[10, 20, 40, 60][at] for at in everything.signer]


def test_a_segment_of_which_nothing_is_kept_or_signed_has_its_files(tmp_path: Path) -> None:
    for name, part in (
        ("unsigned", [Doc(order=1, signature=b"\0" * 224, reason="empty"), Doc(order=2)]),
        ("nothing", [Doc(order=1, signature=b"\0" * 224, reason="empty")]),
    ):
        segments = segment_builder()
        kept, dropped = judged(part)
        segments.add(kept, [dropped])
        found = segments.close(tmp_path / name)
        assert found.sieved.signed == 0
        assert len(read_slots(tmp_path / f"{name}.slots", "order")) == 0
        assert len(open_bands(tmp_path / f"{name}.bands", 13, first=0, last=1024).hash) == 0


def test_packed_signatures_are_null_where_there_is_none() -> None:
    found = sign([ENGLISH, "too short", ENGLISH])
    column = pack_signatures(found)
    assert column.type == SIGNATURE
    assert column.is_valid().to_pylist() == [True, False, True]
    expected = found.bands[0].tobytes() + found.slots[0].tobytes()
    assert column.to_pylist() == [expected, None, expected]
    assert pack_signatures(sign([])).to_pylist() == []
    both = pa.concat_arrays([column.slice(1), column])
    assert both.take(pa.array([1, 4])).to_pylist() == [expected] * 2
