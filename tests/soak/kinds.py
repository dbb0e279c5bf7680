"""The kinds of cases: functions of a Case, which raise an exception to fail.

Guarantee: After `kill -9` at any moment, or on a disk that was full, the same command finishes with
the bytes of an uninterrupted run.
"""

import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.soak.case import Case, file_hashes, flags_of, hashes_and_figures
from tests.soak.check import Failure, OracleState, check_dataset, check_equal
from tests.soak.damage import damage_dataset, damage_input, damage_work, finish
from tests.soak.dataset import PlainDataset
from tests.soak.growth import add_generations, check_compacted, remove_some
from tests.soak.loader import check_reading
from tests.soak.mounts import make_read_only, mount_small
from tests.soak.readers import readers
from tests.soak.scenario import Scenario

PRISM = Path(__file__).parents[2] / ".engines" / "bin" / "prism"


@dataclass(frozen=True)
class Kind:
    """A kind of case."""

    run: Callable[[Case], None]
    weight: int
    about: str
    own_namespace: bool = False
    """Whether the case runs in its own mount namespace."""


# --- uninterrupted runs


def made(case: Case, scenario: Scenario) -> tuple[Path, OracleState]:
    """Build and check a dataset; return the dataset's folder and the oracle's state."""
    output = case.folder / "out"
    case.succeed(*flags_of(scenario, output=output))
    return output, check_dataset(output, scenario)


def plain(case: Case) -> None:
    scenario = case.scenario()
    case.choose_sizes()
    output, _ = made(case, scenario)
    case.succeed("shards", "verify", output)
    case.succeed("shards", "inspect", output)
    case.succeed("shards", "stats", output)
    if case.rng.random() < 0.5:
        done = case.succeed(*flags_of(scenario, output=output))
        if "nothing to do" not in done.output:
            raise Failure(f"a complete dataset was changed: {done.output[-600:]}")
    check_reading(case.rng, output)


# --- kills


def kill(case: Case) -> None:
    scenario = case.scenario()
    if scenario.options["dedup"] == "minhash" and case.rng.random() < 0.4:
        scenario.options.values["minhash_threshold"] = 0
    case.choose_sizes()
    words = flags_of(scenario)
    expected = case.undisturbed(words)
    output = case.folder / "out"
    for _ in range(case.rng.choice((1, 1, 2, 3))):
        case.run_killed(*words, "--output", output)
    finished = {
        stage.name: len([*stage.glob("[!.]*.json")])
        for stage in (output / ".work").glob("*")
        if not (output / "manifest.json").exists()
    }
    finish(case, scenario, output, expected)
    stages = json.loads((output / "report.json").read_bytes())["stages"]
    used = {stage: stages[stage]["finished_before"] for stage in finished if stage in stages}
    check_equal("finished items that are used", used, {stage: finished[stage] for stage in used})


def kill_workers(case: Case) -> None:
    """Kill workers or the driver at random moments of a run that has workers."""
    scenario = case.scenario(small=True)
    words = flags_of(scenario)
    began = time.monotonic()
    case.engine = ("--workers", str(case.rng.choice((1, 2))))
    expected = case.undisturbed(words)
    took = time.monotonic() - began
    output = case.folder / "out"
    for _ in range(case.rng.choice((1, 2))):
        started = case.start([*words, "--output", output])
        wait = case.rng.random() * took
        while not started.poll() and time.monotonic() < started.began + wait:
            time.sleep(0.01)
        if case.rng.random() < 0.5:
            started.kill_worker(case.rng)
        elif not started.poll():
            started.kill()
        done = started.wait()
        case.check_ended(done)
        case.expect_code(done, 0, -9)
    finish(case, scenario, output, expected)


# --- full disks


def full_disk(case: Case) -> None:
    """Run on a file system that becomes full at a random moment."""
    scenario = case.scenario(small=True)
    words = flags_of(scenario)
    expected = case.undisturbed(words)
    disk = case.folder / "disk"
    disk.mkdir()
    mount_small(disk, megabytes=48)
    ballast, output = disk / "ballast", disk / "out"
    room = int(4096 * 2 ** (case.rng.random() * 9))
    case.note("room", room)
    with ballast.open("wb") as file:
        free = shutil.disk_usage(disk).free
        file.write(bytes(max(0, free - room)))
    done = case.expect_code(case.run(*words, "--output", output), 0, 2)
    if done.code:
        kept = "finished work is kept" in done.last_line
        if "no space left on the disk" not in done.last_line or not kept:
            raise Failure(f"unexpected message on a full disk: {done.last_line[:800]}")
        if left := [*output.rglob("manifest.json"), *output.rglob(".tmp-*")]:
            raise Failure(f"{left}, although the disk was full")
    ballast.unlink()
    finish(case, scenario, output, expected)


def read_only(case: Case) -> None:
    """Read inputs and datasets on read-only mounts; check that commands refuse to write there."""
    scenario = case.scenario(small=True)
    output = case.folder / "ro" / "out"
    case.succeed(*flags_of(scenario, output=output))
    state = check_dataset(output, scenario)
    before = file_hashes(output)
    make_read_only(case.folder / "ro")
    for command in ("verify", "inspect", "stats"):
        case.succeed("shards", command, output)
    case.succeed("shards", "place", output, "--to", case.folder / "copy")
    check_reading(case.rng, output)
    check_reading(case.rng, case.folder / "copy")
    key = next(iter(state.fates))
    for words in (
        ["shards", "prune", output],
        ["shards", "compact", output],
        ["shards", "remove", output, "--id", f"{key[1]}:{key[2]}", "--reason", "x"],
        flags_of(scenario, output=output, overwrite=True),
        flags_of(scenario, output=case.folder / "ro" / "new"),
    ):
        # prune and compact succeed if there is nothing to do
        case.expect_code(case.run(*words), *((0, 2) if words[1] in ("prune", "compact") else (2,)))
    check_equal("bytes of the read-only dataset", file_hashes(output), before)


# --- changes of datasets


def append(case: Case) -> None:
    """Append files in several generations, with kills, removals and compactions."""
    scenario = case.scenario(small=True)
    case.choose_sizes()
    add_generations(case, scenario, case.folder / "out")


def takedown(case: Case) -> None:
    """Remove and erase documents, and append their texts again."""
    scenario = case.scenario(small=True)
    output, state = made(case, scenario)
    for _ in range(case.rng.choice((1, 2))):
        remove_some(case, output)
    check_reading(case.rng, output)
    check_compacted(case, output, state)


def overwrite(case: Case) -> None:
    """Replace a dataset by one with different options, then delete the old files."""
    scenario = case.scenario(small=True)
    output, _ = made(case, scenario)
    old = file_hashes(output)
    scenario.options.values["seed"] = 99
    expected = case.undisturbed(flags_of(scenario))
    done = case.run(*flags_of(scenario, output=output))
    if done.code != 2 or "--seed" not in done.last_line:
        raise Failure(f"other options are not refused: {done.code} {done.last_line[:600]}")
    words = flags_of(scenario, output=output, overwrite=True)
    if case.rng.random() < 0.6:
        case.run_killed(*words)
        PlainDataset(output).manifest  # noqa: B018 - one of the two manifests exists
    case.succeed(*words)
    check_dataset(output, scenario)
    still = file_hashes(output)
    check_equal("old files", {name: still.get(name) for name in old if name != "manifest.json"},
          {name: value for name, value in old.items() if name != "manifest.json"})  # fmt: skip
    if case.rng.random() < 0.5:
        case.run_killed("shards", "prune", output, "--days", "0", last=7)
    case.succeed("shards", "prune", output, "--days", "0")
    left = hashes_and_figures(output)
    for name in ("manifest.json", "report.json"):
        expected.pop(name)
        left.pop(name)
    check_equal("files after prune", left, expected)
    case.succeed("shards", "verify", output)


def parts(case: Case) -> None:
    """Run --part for every share, at the same time or one after the other, then merge."""
    scenario = case.scenario()
    words = flags_of(scenario)
    expected = case.undisturbed(words)
    output = case.folder / "out"
    number = case.rng.choice((2, 3, 5))
    shares = [f"{index + 1}/{number}" for index in range(number)]
    case.rng.shuffle(shares)
    if case.rng.random() < 0.5:
        twice = [*shares, shares[0]]  # as engines do if they take a living worker for dead
        started = [case.start([*words, "--output", output, "--part", share]) for share in twice]
        check_equal("parts at the same time", {each.wait().code for each in started}, {0})
    for share in shares:
        if case.rng.random() < 0.3:
            case.run_killed(*words, "--output", output, "--part", share, last=64)
        case.succeed(*words, "--output", output, "--part", share)
    case.succeed(*words, "--output", output, "--part", "merge")
    check_equal("bytes of parts", hashes_and_figures(output), expected)
    check_dataset(output, scenario)


# --- engines


def engines(case: Case) -> None:
    """Run on a different engine, which must give the same bytes."""
    scenario = case.scenario(small=True)
    words = flags_of(scenario)
    expected = case.undisturbed(words)
    prism = ("--runner=PrismRunner", f"--prism_location={PRISM}", "--environment_type=LOOPBACK")
    ways: list[tuple[tuple[str, ...], bool]] = [
        (("--runner=DirectRunner",), False),
        ((), False),
        (("--workers", "2"), False),
        (("--workers", "1"), True),
        *([(prism, False)] * 2 if PRISM.exists() else []),
    ]
    case.engine, case.forked = case.rng.choice(ways)
    case.note("engine", f"{case.engine} forked={case.forked}")
    output, _ = made(case, scenario)
    check_equal("bytes of another engine", hashes_and_figures(output), expected)


KINDS: Mapping[str, Kind] = {
    "plain": Kind(plain, 24, "a run with random inputs and options"),
    "kill": Kind(kill, 16, "kill -9 at a random change of the disk"),
    "kill-workers": Kind(kill_workers, 4, "kill -9 of a worker or driver at a random time"),
    "damage-work": Kind(damage_work, 12, "files of an unfinished run are damaged"),
    "damage-dataset": Kind(damage_dataset, 10, "a damaged dataset, and all commands that read one"),
    "damage-input": Kind(damage_input, 8, "files of the input are damaged"),
    "full-disk": Kind(full_disk, 8, "a disk that becomes full", own_namespace=True),
    "read-only": Kind(read_only, 3, "read-only mounts", own_namespace=True),
    "append": Kind(append, 10, "--append in several steps, removals, compaction"),
    "takedown": Kind(takedown, 6, "remove, erase, append the text again"),
    "overwrite": Kind(overwrite, 5, "--overwrite, kills, prune"),
    "readers": Kind(readers, 5, "readers in a loop during overwrite, prune, place …"),
    "parts": Kind(parts, 3, "--part, merge"),
    "engines": Kind(engines, 2, "DirectRunner, workers, Prism, a fresh process"),
}
