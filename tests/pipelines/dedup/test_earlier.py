"""What of earlier generations a new one is compared with, and what is kept for later ones."""

import hashlib
import uuid
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS
from shards.storage.remote import RemotePath
from shards.tables import open_table, write_table
from tests.pipelines.dedup.rules import (
    EXACT,
    NEAR,
    Choice,
    Parts,
    check,
    grow,
    grow_on,
    made_generations,
    spread,
)
from tests.pipelines.made_segments import Doc

pytestmark = pytest.mark.slow

PLAIN = Choice()


def test_what_lies_behind_a_url_is_read_there() -> None:
    output = RemotePath(f"memory://{uuid.uuid4().hex}")
    choice = Choice(ranges=2)
    generations = made_generations(8, [(20, 9), (12,), (12,)])
    grown = grow(output, generations, choice)
    assert min(check(grown, generations, choice)) > 0
    output.remove([*output.files()])


HIGH = (0, 1, 1 << 20, (1 << 20) + 1, 1 << 62, 2**63, 2**64 - 2, 2**64 - 1)


@st.composite
def texts(draw: st.DrawFn) -> list[Parts]:
    """Generations with few texts, of which some are equal in the first half of the hash."""
    hashes = st.sampled_from([(high << 64) + low for high in HIGH for low in (1, 2, 3)])
    part = st.lists(hashes, min_size=1, max_size=6)
    drawn = draw(st.lists(st.lists(part, min_size=1, max_size=3), min_size=2, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    generations = [
        [[Doc(order=0, hash=text, position=at) for at, text in enumerate(part)] for part in parts]
        for parts in drawn
    ]
    return [spread(rng, parts) for parts in generations]


@settings(deadline=None, max_examples=15)
@given(generations=texts(), ranges=st.sampled_from([1, 2, 8]))
def test_equal_texts_are_found_in_any_generation(
    tmp_path_factory: pytest.TempPathFactory, generations: list[Parts], ranges: int
) -> None:
    output = tmp_path_factory.mktemp("grown")
    choice = Choice(dedup="exact", threshold=0, ranges=ranges)
    grown = grow(output, generations, choice)
    check(grown, generations, choice)
    seen: set[int] = set()
    for each, parts in zip(grown, generations, strict=True):
        (tables,) = [[open_table(output / t.path) for t in each.generation.signatures]]
        rows = [row for table in tables for row in table.to_pylist()]
        mine = {(row["hash_high"] << 64) + row["hash_low"] for row in rows}
        assert mine == {doc.hash for part in parts for doc in part} - seen
        assert len(rows) == len(mine)
        seen |= mine


def signed(order: int, *, bands: tuple[int, ...], slots: int, position: int = 0) -> Doc:
    """A document whose first bands have these values and whose slots are all alike."""
    values = np.arange(NUM_BANDS, dtype=np.uint64) + np.uint64(1000 * order)
    values[: len(bands)] = bands
    signature = values.tobytes() + bytes([slots]) * NUM_SLOTS
    text = int.from_bytes(hashlib.blake2b(signature, digest_size=16).digest())
    return Doc(order=order << 50, position=position, hash=text, signature=signature)


def test_a_document_dropped_before_still_counts(tmp_path: Path) -> None:
    """Nothing is left of the second generation, and yet its band is what the third runs into."""
    generations = [
        [[signed(1, bands=(7, 1), slots=5)], [signed(2, bands=(7, 2), slots=5)]],
        [[signed(3, bands=(30, 2, 43), slots=5)]],
        [[signed(4, bands=(40, 41, 42), slots=5)], [signed(5, bands=(50, 51, 43), slots=5)]],
    ]
    grown = grow(tmp_path, generations, PLAIN)
    assert [each.dropped for each in grown] == [{(1, 0): NEAR}, {(0, 0): NEAR}, {(1, 0): NEAR}]
    assert check(grown, generations, PLAIN) == [0, 2]


def test_a_document_is_compared_with_the_first_generation_only(tmp_path: Path) -> None:
    """Unlike the first that has the band's hash, and like a later one: kept, as in one run."""
    generations = [
        [[signed(9, bands=(7,), slots=5)]],
        [[signed(2, bands=(7,), slots=9)]],
        [[signed(1, bands=(7,), slots=9)], [signed(3, bands=(7,), slots=5)]],
    ]
    grown = grow(tmp_path, generations, PLAIN)
    assert [each.dropped for each in grown] == [{}, {}, {(1, 0): NEAR}]
    check(grown, generations, PLAIN)


def test_a_document_whose_slots_are_gone_is_like_no_other(tmp_path: Path) -> None:
    """As after a takedown: the bands of a copy that comes back are left without slots."""
    one, other = signed(1, bands=(7,), slots=5), signed(2, bands=(7,), slots=5)
    (first,) = grow(tmp_path, [[[one]]], PLAIN)
    near = [table for table in first.generation.signatures if "exact" not in table.path]
    for table in near:
        rows = open_table(tmp_path / table.path)
        write_table(tmp_path / table.path, rows.slice(0, 0))
    grown = [first]
    for part in ([one], [other], [signed(3, bands=(8, 7), slots=5)]):
        grown.append(grow_on(tmp_path, grown, [part], PLAIN))
    assert [each.dropped for each in grown] == [{}, {(0, 0): EXACT}, {}, {}]
