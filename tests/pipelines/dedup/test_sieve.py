from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipelines.dedup.bands import open_bands, read_slots
from pipelines.dedup.drops import NO_ROW
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS, Signer
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
    """By order: kept; near to it; equal to it; unlike it, sharing a band; unsigned; a stranger.

    The near one is dropped, and documents elsewhere are compared with it all the same.
    """
    docs = [
        Doc(order=10, hash=5, signature=signature([0, 1], 0)),
        Doc(order=20, hash=6, signature=signature([0, 2], 9)),
        Doc(order=30, hash=5, signature=signature([0, 1], 0)),
        Doc(order=40, hash=7, signature=signature([0, 2], 99)),
        Doc(order=50, hash=8),
        Doc(order=60, hash=9, signature=signature([], 50)),
    ]
    return [replace(doc, position=n, tokens=[doc.order]) for n, doc in enumerate(docs)]


def test_near_duplicates_are_dropped_within_the_segment(tmp_path: Path) -> None:
    found = write_segment(tmp_path / "s", docs()[::-1])
    assert open_table(tmp_path / "s.documents")["order"].to_pylist() == [10, 40, 50, 60]
    assert "signature" not in open_table(tmp_path / "s.documents").column_names
    tokens = np.fromfile(tmp_path / "s.tokens", "<u2")
    assert tokens.tolist() == [10, 40, 50, 60]
    audit = open_table(tmp_path / "s.audit").to_pylist()
    assert [row["reason"] for row in audit] == [
        *(None, "near-duplicate", "duplicate", None, None, None)
    ]
    assert (found.documents, found.sieved.texts, found.sieved.signed) == (4, 5, 4)
    assert (found.sieved.links, found.sieved.compared, found.sieved.failed) == (1, 3, 2)


def test_a_near_duplicate_is_handed_on_without_a_row(tmp_path: Path) -> None:
    write_segment(tmp_path / "s", docs())
    hashes = open_table(tmp_path / "s.hashes").to_pylist()
    assert [(row["hash_low"], row["order"], row["row"], row["copies"]) for row in hashes] == [
        *((5, 10, 0, 2), (6, 20, NO_ROW, 1), (7, 40, 1, 1), (8, 50, 2, 1), (9, 60, 3, 1))
    ]
    slots = tmp_path / "s.slots"
    assert read_slots(slots, "order").tolist() == [10, 20, 40, 60]
    assert read_slots(slots, "row").tolist() == [0, NO_ROW, 1, 3]
    assert read_slots(slots, "slots")[1].tolist() == [0] * 9 + [1] * 103
    assert open_table(tmp_path / "s.links").to_pylist() == [{"signer": 1, "smaller": 0}]
    for band, wanted in ((0, [(0, 2), (2, 1)]), (2, [(1, 1), (2, 1)]), (1, [(0, 1)])):
        rows = open_bands(tmp_path / "s.bands", band, first=0, last=1)
        shared = rows.hash == band
        columns = (rows.signer[shared].tolist(), rows.copies[shared].tolist())
        assert list(zip(*columns, strict=True)) == wanted


@pytest.mark.parametrize(("threshold", "kept"), [(0.0, 3), (0.05, 3), (0.5, 4), (0.99, 5)])
def test_the_threshold_decides_what_is_near(tmp_path: Path, threshold: float, kept: int) -> None:
    found = write_segment(tmp_path / "s", docs(), threshold=threshold)
    assert found.documents == kept


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
    found = Signer().signatures([ENGLISH, "too short", ENGLISH])
    column = pack_signatures(found)
    assert column.type == SIGNATURE
    assert column.is_valid().to_pylist() == [True, False, True]
    expected = found.bands[0].tobytes() + found.slots[0].tobytes()
    assert column.to_pylist() == [expected, None, expected]
    assert pack_signatures(Signer().signatures([])).to_pylist() == []
    both = pa.concat_arrays([column.slice(1), column])
    assert both.take(pa.array([1, 4])).to_pylist() == [expected] * 2
