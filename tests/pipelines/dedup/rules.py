"""Dedup of whole small corpora, and what its rules say of them, written out in plain Python."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.dedup.bands import are_similar
from pipelines.dedup.drops import Drops, drop_path
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS
from pipelines.dedup.phases import Dedup, Deduplicated
from pipelines.engine.phases import Phases
from pipelines.merge.slices import merged_rows
from pipelines.segments.plan import Plan
from shards.range import EVERYTHING
from tests.pipelines.inline import InlineRunner
from tests.pipelines.made_segments import Doc

EXACT, NEAR = "duplicate", "near-duplicate"
Key = tuple[int, int, int]
"""A signer: order, segment, number."""


def deduplicated(
    output: Path, plan: Plan, *, threshold: float = 0.7, clusters: str = "local"
) -> tuple[Deduplicated, list[Any]]:
    runner = InlineRunner()
    phases = Phases(output / ".work", runner)  # type: ignore[arg-type]  # all of a runner it uses
    return Dedup(
        phases, plan, output, dedup="minhash", clusters=clusters, threshold=threshold
    ).run(), runner.tasks


def verdicts(output: Path, plan: Plan, found: Deduplicated) -> dict[tuple[int, int], str]:
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


def check_account(output: Path, plan: Plan, found: Deduplicated) -> None:
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
        self.compared = self.failed = 0
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
                self.compared += len(others)
                similar = [key for key in others if self.similar(smallest, key)]
                self.edges |= {(key, smallest) for key in similar}
                self.failed += len(others) - len(similar)

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
    rng: np.random.Generator, sizes: Sequence[int], *, families: int = 6, ties: bool = True
) -> list[list[Doc]]:
    """Documents of families that share some bands, more or less similar; some equal, some unsigned.

    Within a segment orders differ; between segments some are equal.
    """
    base = rng.integers(0, 256, (families, NUM_SLOTS)).astype(np.uint8)
    hashes = rng.integers(0, 2**64, (families, NUM_BANDS), dtype=np.uint64)
    parts = []
    for size in sizes:
        orders = rng.choice(4 * sum(sizes), size, replace=False).astype(np.uint64)
        scale = np.uint64(2**64 // (4 * sum(sizes)) + 1 if ties else rng.integers(1, 2**50))
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
