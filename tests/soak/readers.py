"""Reads a dataset in a loop while it is replaced, appended to, compacted and pruned.

Each reading finds a complete state of the dataset, and a dataset that is open does not change.

Guarantee: Readers miss no file during appends, compactions, overwrites and prunes.
"""

import hashlib
import json
import os
import sys
import time
from pathlib import Path

from shards.errors import UserError
from shards.reader import Dataset
from shards.sampling.sampler import Sampler
from shards.sampling.streams import streams_of
from shards.sampling.windows import glm_windows
from tests.forks import die_with_parent
from tests.soak.case import Case, flags_of
from tests.soak.check import Failure, check_equal
from tests.soak.dataset import PlainDataset
from tests.soak.scenario import Scenario
from trainer.loader import Loader

WAYS = ("anew", "held", "windows")
"""The ways to read: open the dataset anew each time, open it only once, or read windows through a
loader."""


def content_of(folder: Path) -> tuple[str, str]:
    """Return the number and lineage of a dataset, and a hash of the files that training reads."""
    plain = PlainDataset(folder)
    state = hashlib.sha256()
    removed = plain.removed()
    for generation in plain.manifest["generations"]:
        for source in sorted(generation["sources"]):
            for shard in plain.shards(generation, source, "train"):
                state.update(plain.tokens(shard).tobytes())
                rows = sorted(row for path, row in removed if path == shard["path"])
                state.update(str(rows).encode())
    manifest = plain.manifest
    return f"{manifest['number']} {manifest['lineage']}", state.hexdigest()


def _read_through(folder: Path, stop: Path, way: str) -> list[tuple[str, str]]:
    """Read until a file `stop` exists, and return the states and errors that were seen."""
    seen = []
    dataset = None
    while True:
        last = stop.exists()
        try:
            dataset = dataset if way == "held" and dataset else Dataset.open(folder)
            if way == "windows":
                read_windows(dataset)
            seen.append(_state_of(dataset))
        except UserError as error:
            seen.append(("error", str(error)))
        if last:
            return seen


def _state_of(dataset: Dataset) -> tuple[str, str]:
    state = hashlib.sha256()
    for entry in dataset.manifest.shards():
        shard = dataset.shard(entry)
        state.update(shard.tokens.tobytes())
        state.update(str(shard.removed.tolist()).encode())
    manifest = dataset.manifest
    return f"{manifest.number} {manifest.lineage}", state.hexdigest()


def read_windows(dataset: Dataset) -> None:
    """Read a few batches as training does."""
    streams = streams_of(dataset)
    if streams:
        sampler = Sampler(streams, seed=1, num_scatters=1, window=glm_windows(128))
        for batch in Loader(sampler, batch_size=4, steps=6):
            assert batch["tokens"].shape[0] == 4


def _start(folder: Path, stop: Path, way: str, reports: Path) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        die_with_parent()
        reports.write_text(json.dumps(_read_through(folder, stop, way)))
        code = 0
    except BaseException as error:  # noqa: BLE001 - the parent reports it
        reports.write_text(json.dumps([("crash", repr(error))]))
    finally:
        os._exit(code)


def readers(case: Case) -> None:
    """Change a dataset in all ways while processes read it."""
    rng = case.rng
    scenario = case.scenario(small=True)
    output, stop = case.folder / "out", case.folder / "stop"
    case.succeed(*flags_of(scenario, output=output), "--append")
    states = dict([content_of(output)])
    ways = rng.choices(WAYS, k=2)
    reports = [case.folder / f"seen-{number}.json" for number in range(len(ways))]
    pids = [_start(output, stop, way, path) for way, path in zip(ways, reports, strict=True)]
    case.note("readers", ways)
    for number in range(rng.choice((3, 5))):
        step = rng.choice(("overwrite", "append", "remove", "compact", "prune", "place"))
        _change(case, scenario, output, step, number=number)
        states.update([content_of(output)])
        time.sleep(rng.random() / 4)
    stop.touch()
    for pid, path, way in zip(pids, reports, ways, strict=True):
        os.waitpid(pid, 0)
        _check_seen(json.loads(path.read_text()), states, way)
    case.note("readings", [len(json.loads(path.read_text())) for path in reports])


def _change(case: Case, scenario: Scenario, output: Path, step: str, *, number: int) -> None:
    """Make one kind of change to a dataset."""
    if step == "overwrite":
        scenario.options.values["seed"] = case.rng.randrange(1000)
        case.succeed(*flags_of(scenario, output=output, overwrite=True))
    elif step == "append":
        scenario.add_files(scenario.sources[0], 1, records=20)
        case.succeed(*flags_of(scenario, output=output, append=True))
    elif step == "remove":
        sources = PlainDataset(output).manifest["generations"][0]["sources"].values()
        names = [entry["shards"][0]["path"] for entry in sources if entry["shards"]]
        if names:  # otherwise every document was dropped
            words = ["shards", "remove", output, "--id", f"{names[0]}:0", "--missing-ok"]
            case.succeed(*words, "--reason", "x")
    elif step == "place":
        _place(case, output, case.folder / f"copy-{number}", case.rng.random() < 0.5)
    else:
        case.succeed("shards", step, output)


def _check_seen(seen: list[list[str]], states: dict[str, str], way: str) -> None:
    for number, state in seen:
        if number == "crash":
            raise Failure(f"a reader ({way}) crashed: {state}")
        if number == "error":
            raise Failure(f"a reader ({way}) got an error: {state}")
        if number not in states:
            raise Failure(f"a reader ({way}) saw number {number}, not one of {sorted(states)}")
        check_equal(
            f"the state that a reader ({way}) saw at number {number}", state, states[number]
        )
    if way == "held" and len({number for number, _ in seen}) > 1:
        raise Failure("an open dataset has changed")


def _place(case: Case, output: Path, copy: Path, during: bool) -> None:
    """Copy the dataset, perhaps while it is pruned, and check the copy."""
    started = case.start(["shards", "place", output, "--to", copy])
    if during:
        case.succeed("shards", "prune", output)
    done = started.wait()
    case.check_ended(done)
    case.expect_code(done, 0)
    case.succeed("shards", "place", output, "--to", copy, "--check")
    check_equal("the placed copy", content_of(copy), content_of(output))
