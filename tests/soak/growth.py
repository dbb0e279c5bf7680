"""Cases that append generations, remove documents, and compact.

Guarantee: `--append` keeps the documents that one run over all the input keeps, and no later crawl
adds removed documents again.
"""

from pathlib import Path

import numpy as np

from tests.soak.case import Case, file_hashes, flags_of
from tests.soak.check import Failure, OracleState, check_dataset, check_equal
from tests.soak.dataset import DocumentKey, PlainDataset, StoredDocument
from tests.soak.loader import check_reading
from tests.soak.scenario import Scenario


def add_generations(case: Case, scenario: Scenario, output: Path) -> None:
    """Append files in several steps, between which documents are removed, compacted and read."""
    rng = case.rng
    first = flags_of(scenario, output=output)
    case.succeed(*first, *(["--append"] if rng.random() < 0.5 else []))
    state = check_dataset(output, scenario)
    for _ in range(rng.choice((1, 2, 3))):
        added = [
            file
            for source in scenario.sources
            if rng.random() < 0.7
            for file in scenario.add_files(source, rng.choice((1, 2)), records=rng.choice((3, 30)))
        ]
        words = [*flags_of(scenario, output=output), "--append"]
        before = file_hashes(output)
        if not added:
            case.succeed(*words)
            check_equal("bytes without new files", file_hashes(output), before)
            continue
        if rng.random() < 0.5:
            case.run_killed(*words)
        case.succeed(*words)
        kept = {name: file_hashes(output).get(name) for name in before if name != "manifest.json"}
        check_equal("earlier files", kept, {name: before[name] for name in kept})
        check_dataset(output, scenario, state)
        step = rng.choice(("", "", "remove", "compact", "read"))
        if step == "remove":
            remove_some(case, output)
        elif step == "compact":
            check_compacted(case, output, state)
        elif step == "read":
            check_reading(rng, output)
    case.succeed("shards", "verify", output)
    check_reading(rng, output)


def remove_some(case: Case, output: Path) -> None:
    """Remove random documents, named in random ways."""
    rng = case.rng
    plain = PlainDataset(output)
    stored = plain.stored()
    before = plain.removed()
    names = []
    for document in rng.sample(stored, min(len(stored), rng.choice((1, 3, 10)))):
        ways = [f"{document.shard}:{document.row}", f"{document.key[1]}:{document.key[2]}"]
        if document.columns.get("id"):
            ways.append(document.columns["id"])
        names.append(rng.choice(ways))
    chosen = set(names)
    wanted = before | {
        (document.shard, document.row)
        for document in stored
        if {f"{document.shard}:{document.row}", f"{document.key[1]}:{document.key[2]}"} & chosen
        or document.columns.get("id") in chosen
    }
    asked = case.folder / "asked.txt"
    asked.write_text("".join(f"{name}\n" for name in [*names, "nobody-has-this-name"]))
    words = ["shards", "remove", output, "--documents", asked, "--missing-ok"]
    case.succeed(*words, "--dry-run")
    check_equal("removed by --dry-run", PlainDataset(output).removed(), before)
    if rng.random() < 0.3:
        case.run_killed(*words, "--reason", "a letter", last=7)
    case.succeed(*words, "--reason", "a letter")
    check_equal("removed documents", PlainDataset(output).removed(), wanted)
    case.succeed("shards", "verify", output)


def check_compacted(case: Case, output: Path, state: OracleState) -> None:
    """Compact a dataset, perhaps with --erase, and check that the rest is unchanged."""
    rng = case.rng
    plain = PlainDataset(output)
    removed = plain.removed()
    stored = plain.stored()
    gone = {document.key for document in stored if (document.shard, document.row) in removed}
    verdicts = _verdicts(plain)
    words = ["shards", "compact", output, *rng.choice(([], ["--erase"]))]
    if rng.random() < 0.4:
        case.run_killed(*words, last=64)
    case.succeed(*words)
    made = PlainDataset(output)
    now = made.stored()
    expected = [document for document in stored if document.key not in gone]
    check_equal("documents after compact", _by_place(now), _by_place(expected))
    check_equal("removed after compact", {*made.removed()}, set())
    for generation, source, split in made.splits():
        orders = [one.order for one in made.documents(generation, source, split)]
        check_equal(f"order of {source} after compact", orders, sorted(orders))
    verdicts = {key: value for key, value in verdicts.items() if key not in gone}
    check_equal("audit after compact", _verdicts(made), verdicts)
    state.generations = [generation["name"] for generation in made.manifest["generations"]]
    case.succeed("shards", "prune", output, "--days", "0")
    if gone:
        _check_erased(case, output, [one for one in stored if one.key in gone], expected)
    case.succeed("shards", "verify", output)
    check_reading(rng, output)


def _verdicts(plain: PlainDataset) -> dict[object, object]:
    """Return the verdict and reason in every audit row, by document."""
    return {
        (row["source"], row["path"], row["position"], row["ordinal"]): (
            row["verdict"],
            row["reason"],
        )
        for generation in plain.manifest["generations"]
        for row in plain.rows(generation, "audit")
    }


def _by_place(documents: list[StoredDocument]) -> dict[DocumentKey, object]:
    return {one.key: (one.order, one.tokens, one.prompt) for one in documents}


def _check_erased(
    case: Case, output: Path, gone: list[StoredDocument], left: list[StoredDocument]
) -> None:
    """Check that no file contains the order, text or tokens of an erased document any more."""
    kept = {one.text for one in left}
    dropped = [
        row
        for generation in PlainDataset(output).manifest["generations"]
        for row in PlainDataset(output).rows(generation, "dropped")
    ]
    check_equal(
        "near-duplicates", [row for row in dropped if row["reason"] == "near-duplicate"], []
    )
    folded = {" ".join(str(row["text"]).split()) for row in dropped}
    contents = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    for document in gone:
        sought = {"order": document.order.to_bytes(8, "little")}
        if document.text not in kept and len(document.text) >= 40:
            if " ".join(document.text.split()) in folded:
                raise Failure(f"the text of {document.key} is still among the dropped ones")
            sought["text"] = document.text.encode()
            sought["tokens"] = np.array(document.tokens[1:-1], "<u2").tobytes()
        for what, needle in sought.items():
            for path, content in contents.items():
                if needle in content:
                    raise Failure(f"the {what} of {document.key} is still in {path}")
    case.note("erased", len(gone))
