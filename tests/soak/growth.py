"""Datasets that grow by generations, lose documents, and are compacted.

Guarantee: `--append` keeps the documents that one run over all the input keeps, and no later crawl
brings back what was removed.
"""

from pathlib import Path

import numpy as np

from tests.soak.case import Case, flags_of, shipped
from tests.soak.check import Failure, Ledger, agree, check_dataset
from tests.soak.dataset import Place, Plain, Stored
from tests.soak.loader import check_reading
from tests.soak.world import World


def add_generations(case: Case, world: World, output: Path) -> None:
    """Add files in steps; between them remove documents, compact and read."""
    rng = case.rng
    first = flags_of(world, output=output)
    case.succeed(*first, *(["--append"] if rng.random() < 0.5 else []))
    ledger = check_dataset(output, world)
    for _ in range(rng.choice((1, 2, 3))):
        added = [
            file
            for source in world.sources
            if rng.random() < 0.7
            for file in world.add_files(source, rng.choice((1, 2)), records=rng.choice((3, 30)))
        ]
        words = [*flags_of(world, output=output), "--append"]
        before = shipped(output)
        if not added:
            case.succeed(*words)
            agree("bytes without new files", shipped(output), before)
            continue
        if rng.random() < 0.5:
            case.killed(*words)
        case.succeed(*words)
        kept = {name: shipped(output).get(name) for name in before if name != "manifest.json"}
        agree("earlier files", kept, {name: before[name] for name in kept})
        check_dataset(output, world, ledger)
        step = rng.choice(("", "", "remove", "compact", "read"))
        if step == "remove":
            remove_some(case, output)
        elif step == "compact":
            check_compacted(case, output, ledger)
        elif step == "read":
            check_reading(rng, output)
    case.succeed("shards", "verify", output)
    check_reading(rng, output)


def remove_some(case: Case, output: Path) -> None:
    """Remove random documents by random names."""
    rng = case.rng
    plain = Plain(output)
    stored = plain.stored()
    before = plain.removed()
    names = []
    for document in rng.sample(stored, min(len(stored), rng.choice((1, 3, 10)))):
        ways = [f"{document.shard}:{document.row}", f"{document.place[1]}:{document.place[2]}"]
        if document.columns.get("id"):
            ways.append(document.columns["id"])
        names.append(rng.choice(ways))
    chosen = set(names)
    wanted = before | {
        (document.shard, document.row)
        for document in stored
        if {f"{document.shard}:{document.row}", f"{document.place[1]}:{document.place[2]}"} & chosen
        or document.columns.get("id") in chosen
    }
    asked = case.folder / "asked.txt"
    asked.write_text("".join(f"{name}\n" for name in [*names, "nobody-has-this-name"]))
    words = ["shards", "remove", output, "--documents", asked, "--missing-ok"]
    case.succeed(*words, "--dry-run")
    agree("removed by --dry-run", Plain(output).removed(), before)
    if rng.random() < 0.3:
        case.killed(*words, "--reason", "a letter", last=7)
    case.succeed(*words, "--reason", "a letter")
    agree("removed documents", Plain(output).removed(), wanted)
    case.succeed("shards", "verify", output)


def check_compacted(case: Case, output: Path, ledger: Ledger) -> None:
    """Compact a dataset, perhaps without what was removed; the rest is the same."""
    rng = case.rng
    plain = Plain(output)
    removed = plain.removed()
    stored = plain.stored()
    gone = {document.place for document in stored if (document.shard, document.row) in removed}
    verdicts = _verdicts(plain)
    words = ["shards", "compact", output, *rng.choice(([], ["--erase"]))]
    if rng.random() < 0.4:
        case.killed(*words, last=64)
    case.succeed(*words)
    made = Plain(output)
    now = made.stored()
    expected = [document for document in stored if document.place not in gone]
    agree("documents after compact", _by_place(now), _by_place(expected))
    agree("removed after compact", {*made.removed()}, set())
    for generation, source, split in made.homes():
        orders = [one.order for one in made.documents(generation, source, split)]
        agree(f"order of {source} after compact", orders, sorted(orders))
    verdicts = {place: value for place, value in verdicts.items() if place not in gone}
    agree("audit after compact", _verdicts(made), verdicts)
    ledger.generations = [generation["name"] for generation in made.manifest["generations"]]
    case.succeed("shards", "prune", output, "--days", "0")
    if gone:
        _check_erased(case, output, [one for one in stored if one.place in gone], expected)
    case.succeed("shards", "verify", output)
    check_reading(rng, output)


def _verdicts(plain: Plain) -> dict[object, object]:
    """Return verdict and reason of every audit row of all generations."""
    return {
        (row["source"], row["path"], row["position"], row["ordinal"]): (
            row["verdict"],
            row["reason"],
        )
        for generation in plain.manifest["generations"]
        for row in plain.rows(generation, "audit")
    }


def _by_place(documents: list[Stored]) -> dict[Place, object]:
    return {one.place: (one.order, one.tokens, one.prompt) for one in documents}


def _check_erased(case: Case, output: Path, gone: list[Stored], left: list[Stored]) -> None:
    """Check that no file has order, text or tokens of an erased document any more."""
    kept = {one.text for one in left}
    dropped = [
        row
        for generation in Plain(output).manifest["generations"]
        for row in Plain(output).rows(generation, "dropped")
    ]
    agree("near-duplicates", [row for row in dropped if row["reason"] == "near-duplicate"], [])
    folded = {" ".join(str(row["text"]).split()) for row in dropped}
    contents = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    for document in gone:
        sought = {"order": document.order.to_bytes(8, "little")}
        if document.text not in kept and len(document.text) >= 40:
            if " ".join(document.text.split()) in folded:
                raise Failure(f"the text of {document.place} is still among the dropped ones")
            sought["text"] = document.text.encode()
            sought["tokens"] = np.array(document.tokens[1:-1], "<u2").tobytes()
        for what, needle in sought.items():
            for path, content in contents.items():
                if needle in content:
                    raise Failure(f"the {what} of {document.place} is still in {path}")
    case.note("erased", len(gone))
