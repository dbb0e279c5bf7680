"""Files that are harmed: what an unfinished run has left, a complete dataset, inputs.

Guarantee: Damage is found: sizes when a shard is opened, checksums by `verify`.
"""

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePath

from shards.exports.formats import FORMATS
from shards.reader import Dataset
from tests.pipelines.mutations import harmed
from tests.pipelines.trial import said_in_child
from tests.shards.datasets import sealed
from tests.soak.case import Case, Nothing, flags_of, reported, shipped
from tests.soak.check import Failure, agree, check_dataset
from tests.soak.growth import remove_some
from tests.soak.readers import read_windows
from tests.soak.world import World

_STEP = "shards trace --data {data} --batch-size 4 --length 128"
_READERS = (
    "shards inspect {data}",
    "shards inspect {data} --doc {number}",
    "shards inspect {data} --doc {number} --split validation",
    "shards stats {data}",
    "shards place {data} --check",
    "shards place {data} --to {new}",
    *(f"shards export {{data}} --output {{new}} --to {form}" for form in FORMATS),
    "shards megatron {data}",
    f"{_STEP} --step {{number}}",
    f"{_STEP} --objective causal --step {{number}}",
    f"{_STEP} --until 9 --document {{name}}",
    "shards remove {data} --url https://* --id {name} --missing-ok --dry-run",
    "shards remove {data} --id {name} --missing-ok --reason asked",
    "shards compact {data}",
    "shards compact {data} --erase",
    "shards prune {data} --days 0",
    "pipelines.rethreshold {data}",
    "pipelines.report {data} --output {new}",
)
"""Commands that read a dataset, or make another of it, besides runs on it and training."""


def harm(case: Case, path: Path, others: Sequence[Path] = ()) -> str:
    """Harm a file in one way; return which, or nothing if it is what it was.

    Args:
        case: The case.
        path: The file, which may be a link to one that stays what it is.
        others: Files, the content of one of which may take its place.
    """
    rng, before, after = case.rng, path.read_bytes(), None
    way = rng.choice(("remove", *["swap"] * bool(others), *["change"] * 6))
    if way == "swap":
        after = rng.choice(others).read_bytes()
    elif way == "change":
        way, after = harmed(before, rng)
    case.note(way, path)
    path.unlink()
    if after is not None:
        path.write_bytes(after)
    return "" if after == before else way


def harm_work(case: Case) -> None:
    """Harms what an unfinished run has left, then runs the same command again."""
    world = case.world()
    case.choose_sizes()
    words = flags_of(world)
    expected = case.calm(words)
    output = case.folder / "out"
    case.killed(*words, "--output", output, first=4, last=512)
    (output / "manifest.json").unlink(missing_ok=True)
    left = [
        path
        for path in sorted(output.rglob("*"))
        if path.is_file() and path.stat().st_size and path.name != ".lock"
    ]
    for path in case.rng.sample(left, min(len(left), case.rng.choice((1, 2, 5, 20)))):
        harm(case, path)
    finish(case, world, output, expected)


def finish(case: Case, world: World, output: Path, expected: dict[str, str]) -> None:
    """Run a command to its end; what it makes must have the bytes of an undisturbed run."""
    case.succeed(*flags_of(world, output=output))
    agree("bytes after the disturbance", reported(output), expected)
    left = [path for path in output.rglob(".tmp-*")]
    agree("half-written files", left, [])
    check_dataset(output, world)


def harm_dataset(case: Case) -> None:
    """Harms files of a grown dataset: verify says so, and nothing that reads it ends badly."""
    rng = case.rng
    world = case.world(small=True)
    world.options.values["keep_dropped"] = True
    output, copy = case.folder / "out", case.folder / "harmed"
    case.succeed(*flags_of(world, output=output))
    if world.add_files(world.sources[0], 1, records=20):
        case.succeed(*flags_of(world, output=output, append=True))
    remove_some(case, output)
    world.add_files(world.sources[0], 1, records=5)
    before = shipped(output)
    kinds: dict[str, list[str]] = {}
    for path in sorted(output.rglob("*")):
        if path.is_file() and path.stat().st_size and path.name not in (".lock", "report.html"):
            name = path.relative_to(output).as_posix()
            kinds.setdefault(_kind(name), []).append(name)
    for kind in rng.choices([*kinds], k=6):
        name = rng.choice(kinds[kind])
        shutil.copytree(output, copy, copy_function=os.link)
        others = [copy / other for other in rng.choice([*kinds.values()]) if other != name]
        way = harm(case, copy / name, others)
        if way:
            if not (name == "manifest.json" and rng.random() < 0.5 and _seal(copy / name)):
                _verify(case, copy, name if name in before else "", way)
            _read(case, world, copy)
        shutil.rmtree(copy)
    agree("the dataset beside the harmed one", shipped(output), before)


def _kind(name: str) -> str:
    """Return the kind of a file of a dataset: its folder, its ending, or its name."""
    path = PurePath(name)
    tables = ("audit", "rejects", "signatures", "dropped", "removals")
    named = path.parts[-2] if len(path.parts) > 1 else path.name
    return named if named in tables or len(path.parts) == 1 else path.suffix


def _seal(manifest: Path) -> bool:
    """Give a harmed manifest the hash of its content now, if it is one; return whether it is."""
    with suppress(OSError, ValueError):
        content = json.loads(manifest.read_bytes())
        if isinstance(content, dict) and "sha256" in content:
            manifest.write_text(json.dumps(sealed(content)))
            return True
    return False


def _verify(case: Case, copy: Path, name: str, way: str) -> None:
    """Check that verify names a harmed file, if it is one that a dataset is made of."""
    done = case.run("shards", "verify", copy)
    refused = name == "manifest.json" and done.code == 2
    if name and not refused and (done.code != 1 or PurePath(name).name not in done.output):
        raise Failure(f"verify does not name {name} ({way}): {done.code} {done.output[-600:]}")


def _read(case: Case, world: World, copy: Path) -> None:
    """Have some of all readers meet a harmed dataset: each ends with words, or well."""
    rng, new = case.rng, case.folder / "new"
    file = rng.choice(world.inputs)
    name = f"{file.relative}:{rng.choice(file.rows).position if file.rows else 0}"
    names = {"data": copy, "new": new, "number": rng.randrange(20), "name": name}
    commands = [[part.format(**names) for part in words.split()] for words in _READERS]
    for more in ({"append": True}, {}):
        commands.append(flags_of(world, output=copy, **more))
    said = said_in_child(lambda: read_windows(Dataset.open(copy)))
    if said.startswith("cannot be loaded"):
        raise Failure(f"training {said}")
    for words in rng.sample(commands, 3):
        case.run(*words)
        if new.is_dir():
            shutil.rmtree(new)
        else:
            new.unlink(missing_ok=True)


def harm_input(case: Case) -> None:
    """Harms a file of the input: it is refused, or costs what is damaged."""
    world = case.world(small=True)
    world.options.values.pop("sample", None)  # damage is sampled, too
    output = case.folder / "out"
    words = flags_of(world, output=output)
    case.succeed(*words)
    whole, known = shipped(output), _named(output)
    for _ in range(4):
        path = case.rng.choice(world.inputs).path
        before = path.read_bytes()
        way, after = harmed(before, case.rng)
        case.note(way, path)
        path.write_bytes(after)
        shutil.rmtree(output)
        with suppress(Nothing):
            done = case.run(*words)
            checked = path.suffix in (".gz", ".bz2", ".xz") and not done.code
            if checked and shipped(output) != whole and _named(output) <= known:
                raise Failure(f"{path} changed in silence ({way})")
        path.write_bytes(before)
        output.mkdir(exist_ok=True)


def _named(output: Path) -> int:
    """Return how many files a report names that are left out or read only in part."""
    report = json.loads((output / "report.json").read_bytes())
    return len(report["left_out"]) + len(report["cut"])
