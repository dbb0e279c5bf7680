"""The kinds of cases. Each takes a Case and fails by an exception.

Guarantee: After `kill -9` at any moment, or on a disk that was full, the same command finishes with
the bytes of an undisturbed run.
"""

import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.soak.case import Case, flags_of, reported, shipped
from tests.soak.check import Failure, Ledger, agree, check_dataset
from tests.soak.dataset import Plain
from tests.soak.growth import add_generations, check_compacted, remove_some
from tests.soak.harm import finish, harm_dataset, harm_input, harm_work
from tests.soak.loader import check_reading
from tests.soak.mounts import make_read_only, mount_small
from tests.soak.readers import readers
from tests.soak.world import World

PRISM = Path(__file__).parents[2] / ".engines" / "bin" / "prism"


@dataclass(frozen=True)
class Kind:
    """A kind of case."""

    run: Callable[[Case], None]
    weight: int
    about: str
    alone: bool = False
    """Whether it gets a mount namespace of its own."""


# --- a run, and what it made


def made(case: Case, world: World) -> tuple[Path, Ledger]:
    """Make a dataset undisturbed, compare it, and return its ledger."""
    output = case.folder / "out"
    case.succeed(*flags_of(world, output=output))
    return output, check_dataset(output, world)


def plain(case: Case) -> None:
    world = case.world()
    case.choose_sizes()
    output, _ = made(case, world)
    case.succeed("shards", "verify", output)
    case.succeed("shards", "inspect", output)
    case.succeed("shards", "stats", output)
    if case.rng.random() < 0.5:
        done = case.succeed(*flags_of(world, output=output))
        if "nothing to do" not in done.output:
            raise Failure(f"a complete dataset is not left as it is: {done.output[-600:]}")
    check_reading(case.rng, output)


# --- kills


def kill(case: Case) -> None:
    world = case.world()
    if world.options["dedup"] == "minhash" and case.rng.random() < 0.4:
        world.options.values["minhash_threshold"] = 0
    case.choose_sizes()
    words = flags_of(world)
    expected = case.calm(words)
    output = case.folder / "out"
    for _ in range(case.rng.choice((1, 1, 2, 3))):
        done = case.killed(*words, "--output", output)
        if done.code not in (0, -9):
            raise Failure(f"exit code {done.code} after a kill: {done.output[-800:]}")
    finished = {
        phase.name: len([*phase.glob("[!.]*.json")])
        for phase in (output / ".work").glob("*")
        if not (output / "manifest.json").exists()
    }
    finish(case, world, output, expected)
    told = json.loads((output / "report.json").read_bytes())["stages"]
    used = {phase: told[phase]["finished_before"] for phase in finished if phase in told}
    agree("finished tasks that are used", used, {phase: finished[phase] for phase in used})


def kill_workers(case: Case) -> None:
    """Kills workers or the driver at random moments of a run with workers."""
    world = case.world(small=True)
    words = flags_of(world)
    began = time.monotonic()
    case.engine = ("--workers", str(case.rng.choice((1, 2))))
    expected = case.calm(words)
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
        case.look_at(done)
        if done.code not in (0, -9):
            raise Failure(f"exit code {done.code} after a kill: {done.output[-800:]}")
    finish(case, world, output, expected)


# --- full disks


def full_disk(case: Case) -> None:
    """Runs on a file system that fills up at a random moment."""
    world = case.world(small=True)
    words = flags_of(world)
    expected = case.calm(words)
    disk = case.folder / "disk"
    disk.mkdir()
    mount_small(disk, megabytes=48)
    ballast, output = disk / "ballast", disk / "out"
    room = int(4096 * 2 ** (case.rng.random() * 9))
    case.note("room", room)
    with ballast.open("wb") as file:
        free = shutil.disk_usage(disk).free
        file.write(bytes(max(0, free - room)))
    done = case.run(*words, "--output", output)
    if done.code == 2:
        kept = "finished work is kept" in done.said
        if "no space left on the disk" not in done.said or not kept:
            raise Failure(f"another message on a full disk: {done.said[:800]}")
        if left := [*output.rglob("manifest.json"), *output.rglob(".tmp-*")]:
            raise Failure(f"{left}, although the disk was full")
    elif done.code:
        raise Failure(f"exit code {done.code} on a full disk: {done.output[-800:]}")
    ballast.unlink()
    finish(case, world, output, expected)


def read_only(case: Case) -> None:
    """Reads inputs and datasets on read-only mounts; what would write there is refused."""
    world = case.world(small=True)
    output = case.folder / "ro" / "out"
    case.succeed(*flags_of(world, output=output))
    ledger = check_dataset(output, world)
    before = shipped(output)
    make_read_only(case.folder / "ro")
    for command in ("verify", "inspect", "stats"):
        case.succeed("shards", command, output)
    case.succeed("shards", "place", output, "--to", case.folder / "copy")
    check_reading(case.rng, output)
    check_reading(case.rng, case.folder / "copy")
    place = next(iter(ledger.fates))
    for words in (
        ["shards", "prune", output],
        ["shards", "compact", output],
        ["shards", "remove", output, "--id", f"{place[1]}:{place[2]}", "--reason", "x"],
        flags_of(world, output=output, overwrite=True),
        flags_of(world, output=case.folder / "ro" / "new"),
    ):
        done = case.run(*words)
        if done.code == 0 and words[1] in ("prune", "compact"):
            continue  # there was nothing to do
        if done.code != 2:
            raise Failure(f"exit code {done.code} on a read-only disk: {done.output[-600:]}")
    agree("bytes of what is read-only", shipped(output), before)


# --- datasets that grow and shrink


def append(case: Case) -> None:
    """Adds files in several generations, with kills, removals and compactions between them."""
    world = case.world(small=True)
    case.choose_sizes()
    add_generations(case, world, case.folder / "out")


def takedown(case: Case) -> None:
    """Removes documents, erases them, and adds their texts again."""
    world = case.world(small=True)
    output, ledger = made(case, world)
    for _ in range(case.rng.choice((1, 2))):
        remove_some(case, output)
    check_reading(case.rng, output)
    check_compacted(case, output, ledger)


def overwrite(case: Case) -> None:
    """Replaces a dataset by one of other options, then deletes the old one."""
    world = case.world(small=True)
    output, _ = made(case, world)
    old = shipped(output)
    world.options.values["seed"] = 99
    expected = case.calm(flags_of(world))
    done = case.run(*flags_of(world, output=output))
    if done.code != 2 or "--seed" not in done.said:
        raise Failure(f"other options are not refused: {done.code} {done.said[:600]}")
    words = flags_of(world, output=output, overwrite=True)
    if case.rng.random() < 0.6:
        case.killed(*words)
        Plain(output).manifest  # noqa: B018 - one of the two is there
    case.succeed(*words)
    check_dataset(output, world)
    still = shipped(output)
    agree("old files", {name: still.get(name) for name in old if name != "manifest.json"},
          {name: value for name, value in old.items() if name != "manifest.json"})  # fmt: skip
    if case.rng.random() < 0.5:
        case.killed("shards", "prune", output, "--days", "0", last=7)
    case.succeed("shards", "prune", output, "--days", "0")
    left = reported(output)
    for name in ("manifest.json", "report.json"):
        expected.pop(name)
        left.pop(name)
    agree("files after prune", left, expected)
    case.succeed("shards", "verify", output)


def parts(case: Case) -> None:
    """Maps shares at the same time or one after the other, then merges."""
    world = case.world()
    words = flags_of(world)
    expected = case.calm(words)
    output = case.folder / "out"
    number = case.rng.choice((2, 3, 5))
    shares = [f"{index + 1}/{number}" for index in range(number)]
    case.rng.shuffle(shares)
    if case.rng.random() < 0.5:
        twice = [*shares, shares[0]]  # as when an engine takes a living worker for dead
        started = [case.start([*words, "--output", output, "--part", share]) for share in twice]
        agree("parts at the same time", {each.wait().code for each in started}, {0})
    for share in shares:
        if case.rng.random() < 0.3:
            case.killed(*words, "--output", output, "--part", share, last=64)
        case.succeed(*words, "--output", output, "--part", share)
    case.succeed(*words, "--output", output, "--part", "merge")
    agree("bytes of parts", reported(output), expected)
    check_dataset(output, world)


# --- engines


def engines(case: Case) -> None:
    """Runs on another engine: the same bytes."""
    world = case.world(small=True)
    words = flags_of(world)
    expected = case.calm(words)
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
    output, _ = made(case, world)
    agree("bytes of another engine", reported(output), expected)


KINDS: Mapping[str, Kind] = {
    "plain": Kind(plain, 24, "a run of random inputs and options"),
    "kill": Kind(kill, 16, "kill -9 at a random change of the disk, and again"),
    "kill-workers": Kind(kill_workers, 4, "kill -9 of a worker or driver at a random time"),
    "harm-work": Kind(harm_work, 12, "unfinished work is harmed between two runs"),
    "harm-dataset": Kind(harm_dataset, 10, "a harmed dataset, and all that reads one"),
    "harm-input": Kind(harm_input, 8, "files of the input are harmed"),
    "full-disk": Kind(full_disk, 8, "a disk that fills up", alone=True),
    "read-only": Kind(read_only, 3, "read-only mounts", alone=True),
    "append": Kind(append, 10, "--append in several steps, removals, compaction"),
    "takedown": Kind(takedown, 6, "remove, erase, and the text again"),
    "overwrite": Kind(overwrite, 5, "--overwrite, kills, prune"),
    "readers": Kind(readers, 5, "readers in a loop during overwrite, prune, place …"),
    "parts": Kind(parts, 3, "--part, merge"),
    "engines": Kind(engines, 2, "DirectRunner, workers, Prism, a fresh process"),
}
