"""Compares a dataset, read plainly, with the oracle.

Guarantee: read = kept + dropped + quarantined, and the shards hold what was kept.
"""

import json
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.soak.dataset import Place, Plain, Stored
from tests.soak.oracle import CUT, Expected, Fate, Seen, account, expect, hold_out
from tests.soak.world import Input, Options, World


class Failure(AssertionError):
    """A finding differs from the oracle."""


def agree(what: str, found: object, expected: object) -> None:
    """Fail if two things differ, with the first difference of long ones."""
    if found == expected:
        return
    if isinstance(found, dict) and isinstance(expected, dict):
        keys = [key for key in {**expected, **found} if found.get(key) != expected.get(key)]
        where = f"{what}: {len(keys)} differ, the first {keys[0]!r}"
        raise Failure(
            f"{where}: found {found.get(keys[0], 'nothing')!r:.600}, "
            f"expected {expected.get(keys[0], 'nothing')!r:.600}"
        )
    raise Failure(f"{what}: found {found!r:.600}, expected {expected!r:.600}")


@dataclass
class Ledger:
    """The oracle's knowledge of a dataset that grows."""

    options: Options
    seen: Seen = field(default_factory=Seen)
    fates: dict[Place, Fate] = field(default_factory=dict)
    """Of all generations; a place of a file that changed has its last fate."""
    generations: list[str] = field(default_factory=list)
    """Names of those that were compared."""


def check_dataset(folder: Path, world: World, ledger: Ledger | None = None) -> Ledger:
    """Compare all generations of a dataset that the ledger does not know yet.

    Args:
        folder: The dataset.
        world: Its inputs.
        ledger: The comparisons before; it is updated.
    """
    plain = Plain(folder)
    ledger = ledger or Ledger(world.options)
    files = {(file.source, file.relative): file for file in world.inputs}
    made = [
        (entry["source"], entry["path"])
        for generation in plain.manifest["generations"]
        for entry in generation["inputs"]
    ]
    agree("files in generations", sorted(made), sorted(files))
    if not ledger.generations:
        _check_left_out(folder, world)
        if len(plain.manifest["generations"]) == 1:
            _check_ends(folder, world)
    for generation in plain.manifest["generations"]:
        if generation["name"] in ledger.generations:
            continue
        inputs = [files[entry["source"], entry["path"]] for entry in generation["inputs"]]
        _check_generation(plain, generation, inputs, ledger)
        ledger.generations.append(generation["name"])
    return ledger


def _check_left_out(folder: Path, world: World) -> None:
    """Check that the report lists what could not be read of each source."""
    report = json.loads((folder / "report.json").read_bytes())
    listed = Counter(entry["source"] for entry in report["left_out"])
    for source in world.sources:
        agree(f"left out of {source.name}", listed[source.name], source.unreadable)


def _check_ends(folder: Path, world: World) -> None:
    """Check that the report names the files that end too early."""
    report = json.loads((folder / "report.json").read_bytes())
    named = sorted((entry["source"], entry["path"]) for entry in report["cut"])
    cut = (file for file in world.inputs if CUT & {row.judged.rejected for row in file.rows})
    agree("files that end too early", named, sorted((file.source, file.relative) for file in cut))


def _check_generation(
    plain: Plain, generation: dict[str, Any], inputs: Sequence[Input], ledger: Ledger
) -> None:
    options = ledger.options
    audit: dict[Place, dict[str, Any]] = {}
    for row in plain.rows(generation, "audit"):
        place = row["source"], row["path"], row["position"], row["ordinal"]
        if place in audit:
            raise Failure(f"the audit table has {place} twice")
        audit[place] = row
    labels = {place: (row["language"], row["score"]) for place, row in audit.items()}
    expected = expect(inputs, options, labels, ledger.seen)
    _settle_near(expected, audit)
    agree(
        "verdicts",
        {place: (row["verdict"], row["reason"] or "") for place, row in audit.items()},
        {place: (fate.verdict, fate.reason) for place, fate in expected.fates.items()},
    )
    for place, row in audit.items():
        fate = expected.fates[place]
        agree(f"order of {place}", row["order"], fate.order)
        agree(f"bytes of {place}", row["bytes"], len(fate.raw.encode()))
        agree(f"group of {place}", row["group"], fate.group)
        if row["repaired"] is not None:
            agree(f"repaired of {place}", row["repaired"], fate.repaired)
    _check_sources(plain, generation, expected, inputs, options)
    _check_tables(plain, generation, expected, options)
    ledger.fates.update(expected.fates)


def _settle_near(expected: Expected, audit: Mapping[Place, dict[str, Any]]) -> None:
    """Take near-duplicates from the audit table where there may be some."""
    for place, fate in expected.fates.items():
        open_ = fate.may_be_near and not fate.reason and place in audit
        if open_ and audit[place]["reason"] == "near-duplicate":
            fate.reason = "near-duplicate"


def _check_sources(
    plain: Plain,
    generation: dict[str, Any],
    expected: Expected,
    inputs: Sequence[Input],
    options: Options,
) -> None:
    for source in sorted({file.source for file in inputs}):
        kept = [
            fate for fate in expected.fates.values() if fate.place[0] == source and not fate.reason
        ]
        hold_out(kept, options)
        kept.sort(key=lambda fate: fate.order)
        for split in ("train", "validation"):
            stored = [*plain.documents(generation, source, split)]
            wanted = [fate for fate in kept if fate.held_out == (split == "validation")]
            agree(
                f"places in {split} of {source}",
                [document.place for document in stored],
                [fate.place for fate in wanted],
            )
            for document, fate in zip(stored, wanted, strict=True):
                _check_document(document, fate)
            shards = plain.shards(generation, source, split)
            _check_cut(shards, stored)
        if options["shards"] and kept:
            shards = plain.shards(generation, source, "train")
            agree(f"shards of {source}", len(shards), options["shards"])
        if most := options.values.get("shard_tokens"):
            _check_number(plain, generation, source, expected, most)
        told = {**generation["accounting"][source]}
        groups = told.pop("groups")
        agree(f"account of {source}", told, account(expected, source))
        _check_groups(groups, expected, source)


def _check_document(document: Stored, fate: Fate) -> None:
    agree(f"text of {fate.place}", document.text, fate.text)
    agree(f"prompt of {fate.place}", document.prompt, fate.prompt)
    agree(f"order of {fate.place} in its shard", document.order, fate.order)
    agree(f"bytes of {fate.place} in its shard", document.columns["bytes"], len(fate.raw.encode()))


def _check_cut(shards: Sequence[dict[str, Any]], stored: Sequence[Stored]) -> None:
    """Check that each document is in the shard of its order."""
    numbers = {shard["path"]: number for number, shard in enumerate(shards)}
    for document in stored:
        agree(
            f"shard of {document.place}",
            numbers[document.shard],
            (document.order * len(shards)) >> 64,
        )


def _check_number(
    plain: Plain, generation: dict[str, Any], source: str, expected: Expected, most: int
) -> None:
    """Check that shards are as few powers of two as keep each within its tokens."""
    fates = [fate for fate in expected.fates.values() if fate.place[0] == source]
    if any("duplicate" in fate.reason for fate in fates):
        return  # their tokens, which nobody knows here, were counted
    splits = ("train", "validation")
    stored = [one for split in splits for one in plain.documents(generation, source, split)]
    number, within = 1, max([most, *(len(one.tokens) for one in stored)])
    while number < len(stored):
        sizes: Counter[int] = Counter()
        for one in stored:
            sizes[(one.order * number) >> 64] += len(one.tokens)
        if max(sizes.values()) <= within:
            break
        number *= 2
    found = len(plain.shards(generation, source, "train"))
    agree(f"number of shards of {source}", found, number if stored else 0)


def _check_groups(groups: dict[str, Any], expected: Expected, source: str) -> None:
    found: dict[tuple[str, str], tuple[int, int]] = {
        (group, verdict): (figures["rows"], figures["bytes"])
        for group, verdicts in groups.items()
        for verdict, figures in verdicts.items()
    }
    wanted: dict[tuple[str, str], tuple[int, int]] = {}
    for fate in expected.fates.values():
        if fate.place[0] == source:
            rows, size = wanted.get((fate.group, fate.verdict), (0, 0))
            wanted[fate.group, fate.verdict] = rows + 1, size + len(fate.raw.encode())
    if {group for group, _ in wanted} <= {""}:
        wanted = {}
    agree(f"groups of {source}", found, wanted)


def _check_tables(
    plain: Plain, generation: dict[str, Any], expected: Expected, options: Options
) -> None:
    rejects = {
        (row["source"], row["path"], row["position"], row["reason"])
        for row in plain.rows(generation, "rejects")
    }
    wanted = {
        (*fate.place[:3], fate.reason)
        for fate in expected.fates.values()
        if fate.verdict == "quarantined"
    }
    agree("rejects", sorted(rejects), sorted(wanted))
    dropped = {
        (row["source"], row["path"], row["position"], row["ordinal"]): row["text"]
        for row in plain.rows(generation, "dropped")
    }
    fates = expected.fates.values() if options["keep_dropped"] else ()
    texts = {fate.place: fate.text for fate in fates if fate.verdict == "dropped"}
    agree("dropped texts", dropped, texts)


def printable(text: str) -> bool:
    """Return whether a message has no character that acts on a terminal, but line ends and tabs."""
    return not any(
        unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t\r" for char in text
    )
