"""Dedup of a generation against earlier ones: as one run over all, in which the earlier rank first.

The oracle is the rules of one run (rules.py) over all segments, whose orders are moved up by the
number of their generation.
"""

import hashlib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.dedup import exact, phases
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS
from pipelines.dedup.phases import Dedup, Deduplicated
from pipelines.engine.phases import Phases
from pipelines.segments.plan import Earlier, Plan
from shards.manifest import Generation
from shards.storage.files import files
from shards.storage.remote import AnyPath, RemotePath
from shards.tables import open_table, write_table
from tests.pipelines.dedup.rules import EXACT, NEAR, Model, check_account, made_up, spread, verdicts
from tests.pipelines.inline import InlineRunner
from tests.pipelines.made_segments import Doc, write_segments

pytestmark = pytest.mark.slow

SIGNATURE_BYTES = 8 * NUM_BANDS + NUM_SLOTS

Parts = list[list[Doc]]
"""The segments of a generation."""


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_synced() -> Iterator[None]:
    """No power fails here, and waiting for the disk would be nearly all of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shards.storage.files.os.fsync", lambda _: None)
        yield


@dataclass(frozen=True)
class Grown:
    """What dedup of one generation came to."""

    generation: Generation
    plan: Plan
    found: Deduplicated
    dropped: dict[tuple[int, int], str]
    """Reason of each dropped document, by segment and position."""
    tasks: list[Any]


def grow(
    output: AnyPath,
    generations: Sequence[Parts],
    *,
    dedup: str = "minhash",
    threshold: float = 0.7,
    ranges: int = 1,
) -> list[Grown]:
    """Dedup generation after generation, each against those before."""
    grown: list[Grown] = []
    for parts in generations:
        grown.append(grow_on(output, grown, parts, dedup=dedup, threshold=threshold, ranges=ranges))
    return grown


def grow_on(
    output: AnyPath,
    before: Sequence[Grown],
    parts: Parts,
    *,
    dedup: str = "minhash",
    threshold: float = 0.7,
    ranges: int = 1,
) -> Grown:
    """Dedup one generation against those before."""
    work = output / ".work"
    for name in files(work):
        (work / name).unlink()
    sources = ["ab"[at % 2] for at in range(len(parts))]
    plan = replace(
        write_segments(work, parts, sources=sources),
        generation=f"g{len(before) + 1:04}-0",
        earlier=tuple(Earlier.of(each.generation, dedup=dedup) for each in before),
    )
    plan.save(work)
    rows = -(-sum(map(len, parts)) // ranges)
    runner = InlineRunner()
    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            (exact, "ROWS_PER_TASK"),
            *((phases, f"{kind}_PER_TASK") for kind in ("BAND_ROWS", "CANDIDATES", "SLOTS")),
        ):
            patch.setattr(module, name, rows)
        patch.setattr("pipelines.dedup.earlier.CANDIDATES_AT_ONCE", rows)
        found = Dedup(
            Phases(work, runner),  # type: ignore[arg-type]  # all of a runner it uses
            plan,
            output,
            dedup=dedup,
            clusters="local",
            threshold=threshold,
        ).run()
    check_account(output, plan, found)
    generation = Generation(
        number=len(before) + 1,
        name=plan.generation,
        fingerprint="",
        inputs=(),
        sources={},
        audit=(),
        signatures=found.signatures,
        rejects=(),
        accounting={},
    )
    return Grown(generation, plan, found, verdicts(output, plan, found), runner.tasks)


def after(generations: Sequence[Parts]) -> Parts:
    """All segments as those of one run, in which each generation ranks before the next."""
    return [
        [replace(doc, order=doc.order + (number << 64)) for doc in part]
        for number, parts in enumerate(generations)
        for part in parts
    ]


def check(grown: Sequence[Grown], generations: Sequence[Parts], *, threshold: float) -> list[int]:
    """Check verdicts and figures against one run; return how many were known: equal, near."""
    model = Model(after(generations), threshold)
    expected = model.local()
    first, totals = 0, [0, 0]
    for each, parts in zip(grown, generations, strict=True):
        numbers = range(first, first + len(parts))
        read = {
            (at, doc.position): doc.reason
            for at, part in enumerate(parts)
            for doc in part
            if doc.reason
        }
        mine = {(at - first, row): why for (at, row), why in expected.items() if at in numbers}
        assert each.dropped == {**mine, **read}
        known = known_of(model, numbers)
        if first:
            assert each.found.figures["known"] == {"exact": known[0], "near": known[1]}
            by_source = [each.found.known(source) for source in each.plan.sources]
            assert sum(by_source) == sum(known)
        else:
            assert "known" not in each.found.figures
        totals = [total + part for total, part in zip(totals, known, strict=True)]
        first = numbers.stop
    return totals


def known_of(model: Model, numbers: range) -> list[int]:
    """How many texts of the segments are dropped for an earlier one: equal, near."""
    reasons = model.local()
    texts = {doc.hash for number in numbers for doc in model.parts[number] if doc.reason is None}
    near = {one for one, other in model.edges if other[1] < numbers.start}
    places = [(key[1], model.signers[key].position) for key in near if key[1] in numbers]
    return [
        sum(model.exact[text][0] < numbers.start for text in texts),
        sum(reasons[place] == NEAR for place in places),
    ]


def made_generations(
    seed: int, sizes: Sequence[Sequence[int]], *, families: int = 6
) -> list[Parts]:
    """Generations of so many documents per segment, of which many are alike in any of them."""
    rng = np.random.default_rng(seed)
    parts = spread(rng, made_up(rng, [size for part in sizes for size in part], families=families))
    for part in parts:  # so that each segment has signatures, even if none of its documents has
        part.append(Doc(order=1, position=999, reason="empty", signature=bytes(SIGNATURE_BYTES)))
    generations = []
    for counts in sizes:
        generations.append(parts[: len(counts)])
        parts = parts[len(counts) :]
    return generations


def test_what_lies_behind_a_url_is_read_there() -> None:
    output = RemotePath(f"memory://{uuid.uuid4().hex}")
    generations = made_generations(8, [(20, 9), (12,), (12,)])
    grown = grow(output, generations, ranges=2)
    assert min(check(grown, generations, threshold=0.7)) > 0
    output.remove([*output.files()])


SIZES = [(40, 30), (25, 1, 20), (30,)]


@pytest.mark.parametrize("ranges", [1, 2, 8])
@pytest.mark.parametrize("threshold", [0.0, 0.7])
def test_three_generations_are_deduplicated_as_in_one_run(
    tmp_path: Path, threshold: float, ranges: int
) -> None:
    generations = made_generations(1, SIZES)
    grown = grow(tmp_path, generations, threshold=threshold, ranges=ranges)
    known = check(grown, generations, threshold=threshold)
    assert min(known) > 5
    bands = [table for table in grown[0].generation.signatures if "band-03" in table.path]
    assert len(bands) == ranges
    compared = [task for task in grown[1].tasks if "similar to earlier" in str(task)]
    assert bool(compared) == bool(threshold)


@settings(deadline=None, max_examples=12)
@given(
    seed=st.integers(0, 2**32),
    sizes=st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=3), min_size=2, max_size=4),
    families=st.integers(1, 4),
    threshold=st.sampled_from([0.0, 0.5, 0.7]),
    ranges=st.sampled_from([1, 2, 8]),
)
def test_any_generations_are_deduplicated_as_in_one_run(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    sizes: list[list[int]],
    families: int,
    threshold: float,
    ranges: int,
) -> None:
    generations = made_generations(seed, sizes, families=families)
    output = tmp_path_factory.mktemp("grown")
    grown = grow(output, generations, threshold=threshold, ranges=ranges)
    check(grown, generations, threshold=threshold)


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
    grown = grow(output, generations, dedup="exact", ranges=ranges)
    check(grown, generations, threshold=0)
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
    grown = grow(tmp_path, generations)
    assert [each.dropped for each in grown] == [{(1, 0): NEAR}, {(0, 0): NEAR}, {(1, 0): NEAR}]
    assert check(grown, generations, threshold=0.7) == [0, 2]


def test_a_document_is_compared_with_the_first_generation_only(tmp_path: Path) -> None:
    """Unlike the first that has the band's hash, and like a later one: kept, as in one run."""
    generations = [
        [[signed(9, bands=(7,), slots=5)]],
        [[signed(2, bands=(7,), slots=9)]],
        [[signed(1, bands=(7,), slots=9)], [signed(3, bands=(7,), slots=5)]],
    ]
    grown = grow(tmp_path, generations)
    assert [each.dropped for each in grown] == [{}, {}, {(1, 0): NEAR}]
    check(grown, generations, threshold=0.7)


def test_a_document_whose_slots_are_gone_is_like_no_other(tmp_path: Path) -> None:
    """As after a takedown: the bands of a copy that comes back are left without slots."""
    one, other = signed(1, bands=(7,), slots=5), signed(2, bands=(7,), slots=5)
    (first,) = grow(tmp_path, [[[one]]])
    near = [table for table in first.generation.signatures if "exact" not in table.path]
    for table in near:
        rows = open_table(tmp_path / table.path)
        write_table(tmp_path / table.path, rows.slice(0, 0))
    grown = [first]
    for part in ([one], [other], [signed(3, bands=(8, 7), slots=5)]):
        grown.append(grow_on(tmp_path, grown, [part]))
    assert [each.dropped for each in grown] == [{}, {(0, 0): EXACT}, {}, {}]
