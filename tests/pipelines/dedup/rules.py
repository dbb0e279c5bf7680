"""Dedup of small generations, and what its rules say of them, written out in plain Python.

A generation is deduplicated against earlier ones as in one run over all of them, in which the
earlier rank first: so the rules are those of one run, whose orders are moved up by the number of
their generation.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from pipelines.dedup.bands import are_similar
from pipelines.dedup.drops import Drops, drop_path
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS
from pipelines.dedup.phases import Dedup, Deduplicated
from pipelines.engine.phases import Phases
from pipelines.merge.slices import merged_rows
from pipelines.segments.plan import Earlier, Plan
from shards.manifest import Generation
from shards.range import EVERYTHING
from shards.storage.files import files
from shards.storage.remote import AnyPath
from tests.pipelines.inline import InlineRunner
from tests.pipelines.made_segments import Doc, write_segments

EXACT, NEAR = "duplicate", "near-duplicate"
Key = tuple[int, int, int]
"""A signer: order, segment, number."""
Parts = list[list[Doc]]
"""The segments of a generation."""
SIGNED = bytes(8 * NUM_BANDS + NUM_SLOTS)
"""A signature."""

_PER_TASK = (
    "exact.ROWS_PER_TASK",
    "phases.BAND_ROWS_PER_TASK",
    "phases.CANDIDATES_PER_TASK",
    "phases.SLOTS_PER_TASK",
    "phases.DROPS_PER_TASK",
    "earlier.CANDIDATES_AT_ONCE",
)
_AT_ONCE = {"exact.BLOCK_ROWS": 5, "near.PAIRS_AT_ONCE": 3, "bands.PAIRS_AT_ONCE": 3}


@dataclass(frozen=True)
class Grown:
    """What dedup of one generation came to."""

    generation: Generation
    plan: Plan
    found: Deduplicated
    dropped: dict[tuple[int, int], str]
    """Reason of each dropped document, by segment and position."""
    tasks: list[Any]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How generations are deduplicated."""

    dedup: str = "minhash"
    clusters: str = "local"
    threshold: float = 0.7
    ranges: int = 1


def grow(output: AnyPath, generations: Sequence[Parts], choice: Choice) -> list[Grown]:
    """Dedup generation after generation, each against those before."""
    grown: list[Grown] = []
    for parts in generations:
        grown.append(grow_on(output, grown, parts, choice))
    return grown


def grow_on(output: AnyPath, before: Sequence[Grown], parts: Parts, choice: Choice) -> Grown:
    """Dedup one generation against those before."""
    work = output / ".work"
    for name in files(work):
        (work / name).unlink()
    runner = InlineRunner()
    with pytest.MonkeyPatch.context() as patch:
        # No power fails here, and waiting for the disk would be nearly all of the time.
        patch.setattr("shards.storage.files.os.fsync", lambda _: None)
        plan = replace(
            write_segments(work, parts, sources=["ab"[at % 2] for at in range(len(parts))]),
            generation=f"g{len(before) + 1:04}-0",
            earlier=tuple(Earlier.of(each.generation, dedup=choice.dedup) for each in before),
        )
        plan.save(work)
        if choice.ranges > 1:
            rows = -(-sum(map(len, parts)) // choice.ranges)
            for name, limit in {**dict.fromkeys(_PER_TASK, rows), **_AT_ONCE}.items():
                patch.setattr(f"pipelines.dedup.{name}", limit)
        phases = Phases(work, runner)  # type: ignore[arg-type]  # all of a runner it uses
        options = {"clusters": choice.clusters, "threshold": choice.threshold}
        found = Dedup(phases, plan, output, dedup=choice.dedup, **options).run()
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


def check(grown: Sequence[Grown], generations: Sequence[Parts], choice: Choice) -> list[int]:
    """Check verdicts and figures against one run; return how many were known: equal, near."""
    parts = [
        [replace(doc, order=doc.order + (number << 64)) for doc in part]
        for number, parts in enumerate(generations)
        for part in parts
    ]
    model = Model(parts, choice.threshold)
    expected = getattr(model, choice.clusters)()
    first, totals = 0, [0, 0]
    for each, mine in zip(grown, generations, strict=True):
        numbers = range(first, first + len(mine))
        read = {
            (at, doc.position): doc.reason
            for at, part in enumerate(mine)
            for doc in part
            if doc.reason
        }
        late = {(at - first, row): why for (at, row), why in expected.items() if at in numbers}
        assert each.dropped == {**late, **read}
        known = model.known(numbers)
        if first:
            assert each.found.figures["known"] == {"exact": known[0], "near": known[1]}
            assert sum(each.found.known(source) for source in each.plan.sources) == sum(known)
        else:
            assert "known" not in each.found.figures
        totals = [total + part for total, part in zip(totals, known, strict=True)]
        first = numbers.stop
    return totals


def verdicts(output: AnyPath, plan: Plan, found: Deduplicated) -> dict[tuple[int, int], str]:
    """The final reason of each dropped document, by segment and position."""
    work = output / ".work"
    drops = Drops.load([drop_path(work, name) for name in found.drops], EVERYTHING)
    reasons = {}
    for number, segment in enumerate(plan.segments):
        rows = merged_rows({number: segment.path(work)}, "audit", EVERYTHING, drops=drops)
        for row in rows.to_pylist():
            if row["verdict"] != "kept":
                reasons[number, row["position"]] = row["reason"]
    return reasons


def check_account(output: AnyPath, plan: Plan, found: Deduplicated) -> None:
    """What the records count is what the audit rows say."""
    final = verdicts(output, plan, found)
    within: dict[tuple[int, int], str] = {}
    for number, segment in enumerate(plan.segments):
        rows = merged_rows(
            {number: segment.path(output / ".work")}, "audit", EVERYTHING
        ).to_pylist()
        within |= {(number, r["position"]): r["reason"] for r in rows if r["verdict"] != "kept"}
    for source in plan.sources:
        mine = {key for key in final if plan.segments[key[0]].source == source}
        late = [final[key] for key in mine - within.keys()]
        counts = [record.dropped[source] for record in found.records]
        assert {why: sum(part[why] for part in counts) for why in (EXACT, NEAR)} == {
            why: late.count(why) for why in (EXACT, NEAR)
        }
        assert found.dropped(source) == len(late)
        assert all(within[key] == final[key] for key in mine & within.keys())


# --- the rules


@dataclass
class Model:
    """What dedup must find, written out in plain Python."""

    parts: Sequence[Sequence[Doc]]
    threshold: float

    def __post_init__(self) -> None:
        self.reasons: dict[tuple[int, int], str] = {}
        self.signers: dict[Key, Doc] = {}
        self.edges: set[tuple[Key, Key]] = set()
        texts = []
        for number, part in enumerate(self.parts):
            docs = sorted((d for d in part if d.reason is None), key=lambda doc: doc.order)
            firsts: dict[int, Doc] = {}
            for doc in docs:
                if doc.hash in firsts:
                    self.reasons[number, doc.position] = EXACT
                else:
                    firsts[doc.hash] = doc
                    texts.append((doc.hash, doc.order, number, doc.position))
            signed = [doc for doc in docs if firsts[doc.hash] is doc and doc.signature]
            self.signers |= {(doc.order, number, at): doc for at, doc in enumerate(signed)}
        self.exact = {}
        for text, _, number, position in sorted(texts, reverse=True):
            self.exact[text] = (number, position)
        for text, _, number, position in texts:
            if self.exact[text] != (number, position):
                self.reasons[number, position] = EXACT
        self._find_edges()

    def _find_edges(self) -> None:
        for band in range(NUM_BANDS):
            groups: dict[bytes, list[Key]] = defaultdict(list)
            for key, doc in sorted(self.signers.items()):
                assert doc.signature
                groups[doc.signature[8 * band : 8 * band + 8]].append(key)
            for group in groups.values():
                smallest, *others = group
                self.edges |= {(key, smallest) for key in others if self.similar(smallest, key)}

    def similar(self, one: Key, other: Key) -> bool:
        if not self.threshold:
            return True
        slots = [
            np.frombuffer(self.signers[key].signature or b"", np.uint8)[None, 8 * NUM_BANDS :]
            for key in (one, other)
        ]
        return bool(are_similar(*slots, threshold=self.threshold)[0])

    def local(self) -> dict[tuple[int, int], str]:
        return self._with({key for key, _ in self.edges})

    def components(self) -> dict[tuple[int, int], str]:
        return self._with({key for part in self.parts_of() for key in part[1:]})

    def known(self, numbers: range) -> list[int]:
        """How many texts of these segments are dropped for an earlier one: equal, near."""
        reasons = self.local()
        texts = {doc.hash for number in numbers for doc in self.parts[number] if not doc.reason}
        near = {one for one, other in self.edges if other[1] < numbers.start}
        places = [(key[1], self.signers[key].position) for key in near if key[1] in numbers]
        return [
            sum(self.exact[text][0] < numbers.start for text in texts),
            sum(reasons[place] == NEAR for place in places),
        ]

    def parts_of(self) -> list[list[Key]]:
        root = {key: key for key in self.signers}

        def find(key: Key) -> Key:
            while root[key] != key:
                key = root[key]
            return key

        for one, other in self.edges:
            root[max(find(one), find(other))] = min(find(one), find(other))
        parts = defaultdict(list)
        for key in sorted(self.signers):
            parts[find(key)].append(key)
        return list(parts.values())

    def _with(self, near: Iterable[Key]) -> dict[tuple[int, int], str]:
        found = {(key[1], self.signers[key].position): NEAR for key in near}
        return {**found, **self.reasons}


def spread(rng: np.random.Generator, parts: Sequence[Sequence[Doc]]) -> list[list[Doc]]:
    """The same documents with orders from anywhere, all different, as real ones have.

    Equal texts have equal signatures.
    """
    orders = iter(rng.choice(2**40, sum(map(len, parts)), replace=False).tolist())
    signatures: dict[int, bytes | None] = {}
    return [
        [
            replace(
                doc,
                order=(next(orders) << 24) + 5,
                signature=signatures.setdefault(doc.hash, doc.signature),
            )
            for doc in part
        ]
        for part in parts
    ]


def made_up(
    rng: np.random.Generator, sizes: Sequence[int], *, families: int = 6
) -> list[list[Doc]]:
    """Documents of families that share some bands, more or less similar; some equal, some unsigned.

    Within a segment orders differ; between segments some are equal.
    """
    base = rng.integers(0, 256, (families, NUM_SLOTS)).astype(np.uint8)
    hashes = rng.integers(0, 2**64, (families, NUM_BANDS), dtype=np.uint64)
    parts = []
    for size in sizes:
        orders = rng.choice(4 * sum(sizes), size, replace=False).astype(np.uint64)
        scale = np.uint64(2**64 // (4 * sum(sizes)) + 1)
        docs = []
        for position, order in enumerate((orders * scale).tolist()):
            family = rng.integers(families)
            slots = base[family].copy()
            slots[rng.random(NUM_SLOTS) < rng.choice([0.05, 0.15, 0.2, 0.4])] ^= 1
            bands = rng.integers(0, 2**64, NUM_BANDS, dtype=np.uint64)
            shared = rng.random(NUM_BANDS) < rng.choice([0.05, 0.15, 0.4])
            bands[shared] = hashes[family, shared]
            signed = rng.random() < 0.9
            docs.append(
                Doc(
                    order=order,
                    position=position,
                    hash=int(rng.integers(1, 3 * sum(sizes)))
                    * 0x9E3779B97F4A7C15F39CC0605CEDC835
                    % 2**128,
                    signature=bands.tobytes() + slots.tobytes() if signed else None,
                    reason="too-short" if rng.random() < 0.05 else None,
                )
            )
        parts.append(docs)
    return parts


def made_generations(
    seed: int, sizes: Sequence[Sequence[int]], *, families: int = 6, ties: bool = False
) -> list[Parts]:
    """Generations of so many documents per segment, of which many are alike in any of them."""
    rng = np.random.default_rng(seed)
    parts = made_up(rng, [size for part in sizes for size in part], families=families)
    if not ties:
        parts = spread(rng, parts)
    for part in parts:  # so that each segment has signatures, even if none of its documents has
        part.append(Doc(order=1, position=999, reason="empty", signature=SIGNED))
    generations = []
    for counts in sizes:
        generations.append(parts[: len(counts)])
        parts = parts[len(counts) :]
    return generations
