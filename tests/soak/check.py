"""Compares a dataset, read without the product's code, with the oracle.

Guarantee: read = kept + dropped + quarantined, and the shards hold what was kept.
"""

import json
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.soak.dataset import DocumentKey, PlainDataset, StoredDocument
from tests.soak.oracle import CUT, Expected, Fate, SeenDocuments, account, expect, hold_out
from tests.soak.scenario import Input, Options, Scenario


class Failure(AssertionError):
    """A result differs from the expected one."""


def check_equal(what: str, found: object, expected: object) -> None:
    """Raise Failure if two values differ; for mappings, name the first difference."""
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
class OracleState:
    """The oracle's record of a dataset that grows."""

    options: Options
    seen: SeenDocuments = field(default_factory=SeenDocuments)
    fates: dict[DocumentKey, Fate] = field(default_factory=dict)
    """The fates of the documents of all generations, by their keys."""
    generations: list[str] = field(default_factory=list)
    """The names of the generations that were already compared."""


def check_dataset(
    folder: Path, scenario: Scenario, state: OracleState | None = None
) -> OracleState:
    """Compare with the oracle the generations of a dataset that were not compared before.

    Args:
        folder: The folder of the dataset.
        scenario: The inputs and options of the dataset.
        state: The result of earlier comparisons, which is updated.
    """
    plain = PlainDataset(folder)
    state = state or OracleState(scenario.options)
    files = {(file.source, file.relative): file for file in scenario.inputs}
    made = [
        (entry["source"], entry["path"])
        for generation in plain.manifest["generations"]
        for entry in generation["inputs"]
    ]
    check_equal("files in generations", sorted(made), sorted(files))
    if not state.generations:
        only = len(plain.manifest["generations"]) == 1
        _check_unread(folder, scenario, truncated=only)
    for generation in plain.manifest["generations"]:
        if generation["name"] in state.generations:
            continue
        inputs = [files[entry["source"], entry["path"]] for entry in generation["inputs"]]
        _check_generation(plain, generation, inputs, state)
        state.generations.append(generation["name"])
    return state


def _check_unread(folder: Path, scenario: Scenario, *, truncated: bool) -> None:
    """Check that the report lists unreadable files and, if `truncated`, also truncated files."""
    report = json.loads((folder / "report.json").read_bytes())
    left_out = Counter(entry["source"] for entry in report["left_out"])
    for source in scenario.sources:
        check_equal(f"left out of {source.name}", left_out[source.name], source.unreadable)
    if truncated:
        named = sorted((entry["source"], entry["path"]) for entry in report["cut"])
        files = [x for x in scenario.inputs if CUT & {row.result.quarantined for row in x.rows}]
        check_equal("truncated files", named, sorted((x.source, x.relative) for x in files))


def _check_generation(
    plain: PlainDataset, generation: dict[str, Any], inputs: Sequence[Input], state: OracleState
) -> None:
    options = state.options
    audit: dict[DocumentKey, dict[str, Any]] = {}
    for row in plain.rows(generation, "audit"):
        key = row["source"], row["path"], row["position"], row["ordinal"]
        if key in audit:
            raise Failure(f"the audit table has {key} twice")
        audit[key] = row
    labels = {key: (row["language"], row["score"]) for key, row in audit.items()}
    expected = expect(inputs, options, labels, state.seen)
    _settle_near(expected, audit)
    check_equal(
        "verdicts",
        {key: (row["verdict"], row["reason"] or "") for key, row in audit.items()},
        {key: (fate.verdict, fate.reason) for key, fate in expected.fates.items()},
    )
    for key, row in audit.items():
        fate = expected.fates[key]
        check_equal(f"order of {key}", row["order"], fate.order)
        check_equal(f"bytes of {key}", row["bytes"], len(fate.raw.encode()))
        check_equal(f"group of {key}", row["group"], fate.group)
        if row["repaired"] is not None:
            check_equal(f"repaired of {key}", row["repaired"], fate.repaired)
    _check_sources(plain, generation, expected, inputs, options)
    _check_tables(plain, generation, expected, options)
    state.fates.update(expected.fates)


def _settle_near(expected: Expected, audit: Mapping[DocumentKey, dict[str, Any]]) -> None:
    """Accept near-duplicates from the audit table for documents that may be near-duplicates."""
    for key, fate in expected.fates.items():
        open_ = fate.may_be_near and not fate.reason and key in audit
        if open_ and audit[key]["reason"] == "near-duplicate":
            fate.reason = "near-duplicate"


def _check_sources(
    plain: PlainDataset,
    generation: dict[str, Any],
    expected: Expected,
    inputs: Sequence[Input],
    options: Options,
) -> None:
    for source in sorted({file.source for file in inputs}):
        kept = [
            fate for fate in expected.fates.values() if fate.key[0] == source and not fate.reason
        ]
        hold_out(kept, options)
        kept.sort(key=lambda fate: fate.order)
        for split in ("train", "validation"):
            stored = [*plain.documents(generation, source, split)]
            wanted = [fate for fate in kept if fate.held_out == (split == "validation")]
            check_equal(
                f"places in {split} of {source}",
                [document.key for document in stored],
                [fate.key for fate in wanted],
            )
            for document, fate in zip(stored, wanted, strict=True):
                _check_document(document, fate)
            shards = plain.shards(generation, source, split)
            _check_cut(shards, stored)
        if options["shards"] and kept:
            shards = plain.shards(generation, source, "train")
            check_equal(f"shards of {source}", len(shards), options["shards"])
        if most := options.values.get("shard_tokens"):
            _check_number(plain, generation, source, expected, most)
        counts = {**generation["accounting"][source]}
        groups = counts.pop("groups")
        check_equal(f"account of {source}", counts, account(expected, source))
        _check_groups(groups, expected, source)


def _check_document(document: StoredDocument, fate: Fate) -> None:
    check_equal(f"text of {fate.key}", document.text, fate.text)
    check_equal(f"prompt of {fate.key}", document.prompt, fate.prompt)
    check_equal(f"order of {fate.key} in its shard", document.order, fate.order)
    check_equal(
        f"bytes of {fate.key} in its shard", document.columns["bytes"], len(fate.raw.encode())
    )


def _check_cut(shards: Sequence[dict[str, Any]], stored: Sequence[StoredDocument]) -> None:
    """Check that each document is in the shard that its order decides."""
    numbers = {shard["path"]: number for number, shard in enumerate(shards)}
    for document in stored:
        check_equal(
            f"shard of {document.key}",
            numbers[document.shard],
            (document.order * len(shards)) >> 64,
        )


def _check_number(
    plain: PlainDataset, generation: dict[str, Any], source: str, expected: Expected, most: int
) -> None:
    """Check that the number of shards is the smallest power of two that keeps each small enough."""
    fates = [fate for fate in expected.fates.values() if fate.key[0] == source]
    if any("duplicate" in fate.reason for fate in fates):
        return  # the tokens of duplicates also counted, but are unknown here
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
    check_equal(f"number of shards of {source}", found, number if stored else 0)


def _check_groups(groups: dict[str, Any], expected: Expected, source: str) -> None:
    found: dict[tuple[str, str], tuple[int, int]] = {
        (group, verdict): (figures["rows"], figures["bytes"])
        for group, verdicts in groups.items()
        for verdict, figures in verdicts.items()
    }
    wanted: dict[tuple[str, str], tuple[int, int]] = {}
    for fate in expected.fates.values():
        if fate.key[0] == source:
            rows, size = wanted.get((fate.group, fate.verdict), (0, 0))
            wanted[fate.group, fate.verdict] = rows + 1, size + len(fate.raw.encode())
    if {group for group, _ in wanted} <= {""}:
        wanted = {}
    check_equal(f"groups of {source}", found, wanted)


def _check_tables(
    plain: PlainDataset, generation: dict[str, Any], expected: Expected, options: Options
) -> None:
    rejects = {
        (row["source"], row["path"], row["position"], row["reason"])
        for row in plain.rows(generation, "rejects")
    }
    wanted = {
        (*fate.key[:3], fate.reason)
        for fate in expected.fates.values()
        if fate.verdict == "quarantined"
    }
    check_equal("rejects", sorted(rejects), sorted(wanted))
    dropped = {
        (row["source"], row["path"], row["position"], row["ordinal"]): row["text"]
        for row in plain.rows(generation, "dropped")
    }
    fates = expected.fates.values() if options["keep_dropped"] else ()
    texts = {fate.key: fate.text for fate in fates if fate.verdict == "dropped"}
    check_equal("dropped texts", dropped, texts)


def printable(text: str) -> bool:
    """Return whether a message has no control characters except line ends and tabs."""
    return not any(
        unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t\r" for char in text
    )
